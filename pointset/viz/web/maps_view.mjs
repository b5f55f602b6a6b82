/* The part of a page that shows attention: all maps of a layer turn together, and a click enlarges one. */
import { panelAt, positionsIn, pointAt, turnByKey } from "./camera.mjs";
import { CloudCanvas } from "./canvas.mjs";
import { chosenMaps, Controls, Labels, showPalettes, showTicks } from "./controls.mjs";
import { element, say } from "./elements.mjs";

export class MapsView extends CloudCanvas {
  /**
   * `positions`: Int16Array [3 n], in radii of the cloud, times 32,767; `reach`: their extent, see `reachOf`;
   * `palettes` by scheme; `first`: index of the layer to open. `turned()` is called when the user has turned the view.
   */
  constructor({ camera, positions, reach, palettes, layers, first, order, turned = () => {} }) {
    super(element("canvas"), camera, palettes, turned);
    // `enlarged` is the index of the map that fills the window.
    Object.assign(this, { positions, reach, selected: -1, enlarged: null });
    this.labels = new Labels((index) => this.enlarge(index));
    this.controls = new Controls(order, () => this.#chosen());
    showPalettes(palettes);
    element("home").onclick = () => { camera.reset(); this.moved(); };
    element("close").onclick = () => this.close();
    element("previous").onclick = () => this.step(-1);
    element("next").onclick = () => this.step(1);
    document.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resized()).observe(element("frame"));
    this.controls.show(layers, first);
  }

  get layer() { return this.controls.layer; }
  get panels() { return this.enlarged === null ? this.arranged : [this.large]; }

  get look() {
    const { arranged, positions, reach, selected, layer: { codes, scale } } = this;
    return arranged && { positions, codes, scale, reach, selected };
  }

  /**
   * Replace the points, and the layers by others with the same names and sizes. The maps are rearranged only if
   * `settled`, so that nothing jumps while the user drags.
   */
  update(positions, layers, settled) {
    this.positions = positions;
    this.controls.layers = layers;
    if (settled) this.controls.choose({});
    this.redraw();
  }

  /** Replace points and layers, and open the layer with index `first`. */
  replace(positions, layers, reach, first) {
    this.close();
    Object.assign(this, { positions, reach });
    this.controls.show(layers, first);
  }

  /** The position of a point in a panel, in pixels of the canvas. */
  positionOf(panel, point) { return positionsIn(panel, this.camera, this.look)(point).slice(0, 2); }

  /** Fill the window with the map that has this index. */
  enlarge(index) {
    this.leave();
    if (this.enlarged === null) this.#fillWindow(true);
    this.enlarged = index;
    say(element("enlarged-name"), this.layer.nameOf(index));
    say(element("enlarged-note"), `${this.layer.name}, ${this.layer.noteOf(index)}`);
    this.layOut();
  }

  /** Enlarge another of the shown maps instead: the next (1) or the previous (-1). */
  step(by) {
    if (this.enlarged === null) return;
    const shown = this.arranged.map((panel) => panel.index);
    this.enlarge(shown.at((shown.indexOf(this.enlarged) + by) % shown.length));
  }

  /** Show all maps again. */
  close() {
    this.leave();
    const before = this.enlarged;
    if (before === null) return;
    this.enlarged = null;
    this.#fillWindow(false);
    this.layOut();
    this.labels.focus(before);
  }

  #fillWindow(filled) {
    const view = element("view"), { body } = document;
    body.style.minHeight = filled ? `${body.offsetHeight}px` : "";  // the page stays where it is scrolled to
    document.documentElement.classList.toggle("enlarged", filled);
    for (const [name, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-labelledby", "enlarged-name"]])
      if (filled) view.setAttribute(name, value); else view.removeAttribute(name);
    for (const other of document.querySelectorAll("body > :not(#stage, #tip, #help, script)")) other.inert = filled;
    for (const name of ["previous", "next"]) element(name).hidden = this.arranged.length < 2;
    (filled ? element("enlarged-foot") : element("legend")).append(element("bar"));
    if (filled) this.canvas.focus({ preventScroll: true });
  }

  #chosen() {
    showTicks(this.layer.ticks);
    this.layOut();
  }

  /** Compute the layout for the current width, unless it is 0, as in a frame that is not shown yet. */
  layOut() {
    const { clientWidth: width, clientHeight: height } = element("frame"), { reach, enlarged: index } = this;
    if (width < 1) return;
    if (index !== null) {
      this.large = { index, mark: this.layer.mark(index), left: 0, top: 0, width, height };
      this.size(width, height);
    } else {
      const aspect = Math.max(0.7, Math.min(1.4, reach[1] / reach[0]));
      const groups = chosenMaps(this.layer, this.controls.choice);
      this.arranged = this.labels.show(this.layer, groups, width, aspect);
      this.size(width, element("labels").offsetHeight);
    }
    this.redraw();
  }

  size(width, height) {
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    super.size(width, height);
  }

  #under(event) {
    const { offsetX: x, offsetY: y } = event, panel = panelAt(this.panels, x, y);
    if (!panel) return { point: -1 };
    const attended = (point) => this.layer.relative(panel.index, point) > 1;
    return { panel, point: pointAt(panel, x, y, this.camera, this.look, attended) };
  }

  hover(event) {
    const { panel, point } = this.#under(event);
    const tip = element("tip");
    tip.hidden = point < 0;
    if (point >= 0) {
      say(tip, this.layer.describe(panel.index, point));
      const left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 4));
      Object.assign(tip.style, { left: `${left}px`, top: `${Math.max(event.clientY - 52, 2)}px` });
    }
    if (point !== this.selected) { this.selected = point; this.redraw(); }
  }

  press(event) {
    const { panel } = this.#under(event);
    if (this.enlarged !== null) this.hover(event);
    else if (panel) {
      document.documentElement.classList.add("by-hand");
      this.enlarge(panel.index);
    }
  }

  leave() {
    element("tip").hidden = true;
    if (this.selected >= 0) { this.selected = -1; this.redraw(); }
  }

  #key(event) {
    document.documentElement.classList.remove("by-hand");
    if (event.defaultPrevented || event.target.closest("select, input, dialog")) return;
    if ((event.shiftKey || !event.key.startsWith("Arrow")) && turnByKey(event, this.camera)) this.moved();
  }

  moved() {
    this.leave();
    super.moved();
  }

  #resized() {
    const { clientWidth, clientHeight } = element("frame");
    const seen = `${clientWidth} ${this.enlarged === null ? "" : clientHeight} ${window.devicePixelRatio}`;
    if (seen !== this.seen) this.layOut();
    this.seen = seen;
  }
}
