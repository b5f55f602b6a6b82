/* A canvas of panels below the controls of a page, of which a click, a tap or Enter enlarges one. */
import { panelAt, turnByKey } from "./camera.mjs";
import { CloudCanvas } from "./canvas.mjs";
import { element, say } from "./elements.mjs";

/**
 * Subclasses define `arrange(width)`, which lays the labels out and returns their panels, each with an `index` of its
 * own (see `Renderer.draw` for its other values); `titleOf(index)`, the name and the note of an enlarged panel; and
 * `focus(index)`, which moves the keyboard focus to the label of a panel.
 */
export class PanelsView extends CloudCanvas {
  constructor(camera, palettes, turned = () => {}) {
    super(element("canvas"), camera, palettes, turned);
    this.arranged = [];
    this.enlarged = null;  // the index of the panel that fills the window
    element("home").onclick = () => { camera.reset(); this.moved(); };
    element("close").onclick = () => this.close();
    element("previous").onclick = () => this.step(-1);
    element("next").onclick = () => this.step(1);
    document.addEventListener("keydown", (event) => this.#key(event));
    new ResizeObserver(() => this.#resized()).observe(element("frame"));
  }

  get panels() { return this.enlarged === null ? this.arranged : [this.large]; }

  /** Fill the window with the panel that has this index. */
  enlarge(index) {
    this.leave();
    if (this.enlarged === null) this.#fillWindow(true);
    this.enlarged = index;
    const [name, note] = this.titleOf(index);
    say(element("enlarged-name"), name);
    say(element("enlarged-note"), note);
    this.layOut();
  }

  /** Enlarge another of the panels instead: the next (1) or the previous (-1). */
  step(by) {
    if (this.enlarged === null) return;
    const shown = this.arranged.map((panel) => panel.index);
    this.enlarge(shown.at((shown.indexOf(this.enlarged) + by) % shown.length));
  }

  /** Show all panels again. */
  close() {
    this.leave();
    const before = this.enlarged;
    if (before === null) return;
    this.enlarged = null;
    this.#fillWindow(false);
    this.layOut();
    this.focus(before);
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

  /** Compute the layout for the current width, unless it is 0, as in a frame that is not shown yet. */
  layOut() {
    const { clientWidth: width, clientHeight: height } = element("frame"), { enlarged } = this;
    if (width < 1) return;
    if (enlarged === null) {
      this.arranged = this.arrange(width);
      this.size(width, element("labels").offsetHeight);
    } else {
      const panel = this.arranged.find(({ index }) => index === enlarged);
      this.large = { ...panel, left: 0, top: 0, width, height };
      this.size(width, height);
    }
    this.redraw();
  }

  size(width, height) {
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    super.size(width, height);
  }

  press(event) {
    const panel = panelAt(this.panels, event.offsetX, event.offsetY);
    if (this.enlarged !== null) this.hover(event);
    else if (panel) {
      document.documentElement.classList.add("by-hand");
      this.enlarge(panel.index);
    }
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
