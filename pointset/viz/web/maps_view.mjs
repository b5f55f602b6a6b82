/* The part of a page that shows attention: all maps of a layer turn together, and a click enlarges one. */
import { panelAt, positionsIn, pointAt, turnByKey } from "./camera.mjs";
import { CloudCanvas, scheme } from "./canvas.mjs";
import { arranged, chosenMaps, Controls, Labels, showPalette, showTicks } from "./controls.mjs";
import { element, say } from "./elements.mjs";

/** Calls `changed(index)` when a map is enlarged, and `changed(null)` when it is closed. */
class Enlarged {
  constructor(changed) {
    Object.assign(this, { changed, index: null, among: [] });
    element("close").onclick = () => this.close();
    element("previous").onclick = () => this.step(-1);
    element("next").onclick = () => this.step(1);
  }

  get open() { return this.index !== null; }

  /** `among`: the indices of the shown maps, in order; `describe(index)` returns [name, note]. */
  show(index, among, describe) {
    Object.assign(this, { index, among, describe });
    element("stage").style.minHeight = `${element("stage").offsetHeight}px`;
    this.#set(true);
    this.#write();
    element("canvas").focus({ preventScroll: true });
  }

  step(by) {
    const at = this.among.indexOf(this.index);
    this.index = this.among[(at + by + this.among.length) % this.among.length];
    this.#write();
  }

  close() {
    if (!this.open) return;
    this.index = null;
    this.#set(false);
    element("stage").style.minHeight = "";
    this.changed(null);
  }

  #write() {
    const [name, note] = this.describe(this.index);
    say(element("enlarged-name"), name);
    say(element("enlarged-note"), note);
    this.changed(this.index);
  }

  #set(open) {
    document.documentElement.classList.toggle("enlarged", open);
    const view = element("view");
    for (const [name, value] of [["role", "dialog"], ["aria-modal", "true"], ["aria-labelledby", "enlarged-name"]])
      if (open) view.setAttribute(name, value); else view.removeAttribute(name);
    for (const other of document.querySelectorAll("body > :not(#stage, #tip, #help, script)")) other.inert = open;
    for (const name of ["previous", "next"]) element(name).hidden = this.among.length < 2;
    (open ? element("enlarged-foot") : element("legend")).append(element("bar"));
  }
}

export class MapsView extends CloudCanvas {
  /**
   * `shown`: camera, positions (Int16Array [3 n]: radii of the cloud, times 32,767), reach (their extent, see
   * `reachOf`), palettes by scheme, layers, `first` (index of the layer to open), and `order` of the maps; optionally
   * turned(), which is called when the user has turned the view.
   */
  constructor(shown) {
    super(element("canvas"), shown.camera, shown.palettes, shown.turned ?? (() => {}));
    for (const name of ["positions", "reach", "layers"]) this[name] = shown[name];
    this.selected = -1;
    this.renderer.points = this.positions;
    this.labels = new Labels((index) => this.enlarge(index));
    this.enlarged = new Enlarged((index) => this.#enlargedChanged(index));
    const choice = { layer: shown.first, heads: new Set(), order: shown.order, hide: false };
    this.controls = new Controls(this.layers, choice, () => this.#chosen());
    this.#listen();
    this.controls.open(shown.first);
  }

  get layer() { return this.controls.layer; }

  /** The cloud and its view: the arguments of `positionsIn`. */
  get view() { return { positions: this.positions, camera: this.camera, reach: this.reach }; }
  get panels() { return this.enlarged.open ? [this.large] : this.arrangement.panels; }
  get look() { return this.arrangement && { scale: this.layer.scale, reach: this.reach, selected: this.selected }; }

  /**
   * Replace the points, and the layers by others with the same names and sizes. The maps are rearranged only if
   * `settled`, so that nothing jumps while the user drags.
   */
  update(positions, layers, settled) {
    Object.assign(this, { positions, layers });
    this.renderer.points = positions;
    this.controls.layers = layers;
    if (settled) this.controls.choose({});
    else this.renderer.codes = this.layer.codes;
    this.redraw();
  }

  /** Replace points and layers, and open the first layer that pools. */
  replace(positions, layers, reach) {
    this.enlarged.close();
    Object.assign(this, { positions, layers, reach });
    this.renderer.points = positions;
    this.controls.replace(layers, Math.max(0, layers.findIndex((layer) => layer.kind === "pools")));
  }

  /** The position of a point in a panel, in pixels of the canvas. */
  positionOf(panel, point) { return positionsIn(panel, this.view)(point).slice(0, 2); }

  enlarge(index) {
    const layer = this.layer;
    this.leave();
    const describe = (map) => [layer.nameOf(map), `${layer.name}, ${layer.noteOf(map)}`];
    this.enlarged.show(index, this.arrangement.panels.map((panel) => panel.index), describe);
  }

  #enlargedChanged(index) {
    this.layOut();
    if (index === null) this.labels.focus(this.before);
    this.before = index;
  }

  #chosen() {
    this.renderer.codes = this.layer.codes;
    showTicks(this.layer.ticks);
    this.layOut();
  }

  paint() {
    super.paint();
    showPalette(this.palettes[scheme().name]);
  }

  /** Compute the layout for the current width, unless it is 0, as in a frame that is not shown yet. */
  layOut() {
    const { clientWidth: width, clientHeight: height } = element("frame"), { reach, enlarged: { open, index } } = this;
    if (width < 1) return;
    if (open) {
      this.large = { index, mark: this.layer.mark(index), left: 0, top: 0, width, height };
      this.size(width, height);
    } else {
      const aspect = Math.max(0.7, Math.min(1.4, reach[1] / reach[0]));
      this.arrangement = arranged(chosenMaps(this.layer, this.controls.choice), width, aspect);
      for (const panel of this.arrangement.panels) panel.mark = this.layer.mark(panel.index);
      this.labels.show(this.layer, this.arrangement);
      element("none").hidden = this.arrangement.panels.length > 0;
      this.size(width, this.arrangement.height);
    }
    this.redraw();
  }

  size(width, height) {
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    super.size(width, height);
  }

  #under(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const panel = panelAt(this.panels, x, y);
    if (!panel) return { point: -1 };
    return { panel, point: pointAt(panel, x, y, this.view, (point) => this.layer.relative(panel.index, point) > 1) };
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
    if (this.enlarged.open) this.hover(event);
    else if (panel) {
      document.documentElement.classList.add("by-hand");
      this.enlarge(panel.index);
    }
  }

  leave() {
    element("tip").hidden = true;
    if (this.selected >= 0) { this.selected = -1; this.redraw(); }
  }

  /** Return to the first view. */
  goHome() {
    this.camera.reset();
    this.moved();
  }

  #listen() {
    element("home").onclick = () => this.goHome();
    for (const id of ["help-open", "enlarged-help"]) element(id).onclick = () => element("help").showModal();
    document.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resized()).observe(element("frame"));
  }

  #key(event) {
    document.documentElement.classList.remove("by-hand");
    const typing = event.target.closest("select, input, dialog");
    if (event.key === "?" && !element("help").open) element("help").showModal();
    else if (element("help").open) return;
    else if (event.key === "Escape") { this.leave(); this.enlarged.close(); }
    else if (this.enlarged.open && "np".includes(event.key)) this.enlarged.step(event.key === "n" ? 1 : -1);
    else if (!typing && !event.defaultPrevented && (event.shiftKey || !event.key.startsWith("Arrow")))
      if (turnByKey(event, this.camera)) this.moved();
  }

  moved() {
    this.leave();
    super.moved();
  }

  #resized() {
    const { clientWidth, clientHeight } = element("frame");
    const seen = `${clientWidth} ${this.enlarged.open ? clientHeight : ""} ${window.devicePixelRatio}`;
    if (seen !== this.seen) this.layOut();
    this.seen = seen;
  }
}
