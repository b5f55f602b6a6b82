/* A canvas of clouds that turn together, on the screen and on paper. */
import { listenToHand, turnByKey } from "./camera.mjs";
import { made } from "./elements.mjs";
import { Renderer } from "./renderer.mjs";

const COLORS = {
  light: { paper: [1, 1, 1], empty: [0.72, 0.72, 0.72] },
  dark: { paper: [0.078, 0.075, 0.094], empty: [0.42, 0.42, 0.44] },
};
const dark = matchMedia("(prefers-color-scheme: dark)");

/** The name of the colour scheme, and its colours of background and hollow dots; prints are always light. */
export function scheme(printing = false) {
  const name = dark.matches && !printing ? "dark" : "light";
  return { name, ...COLORS[name] };
}

export function mayMove() { return !matchMedia("(prefers-reduced-motion: reduce)").matches; }

/** Slice the canvas into its lines of panels, each with copies of the elements `over` it. */
function onPaper(canvas, over, panels) {
  const ratio = canvas.width / canvas.clientWidth;
  const topOf = (label) => parseFloat(label.style.top);
  const tops = [...new Set(panels.map((panel) => panel.top))].sort((a, b) => a - b);
  const above = (line) => over.map(topOf).filter((y) => y > tops[line - 1]);
  const starts = tops.map((top, line) => (line ? Math.min(top, ...above(line)) : 0));
  const lines = starts.map((start, line) => {
    const end = starts[line + 1] ?? canvas.clientHeight;
    const copies = over.filter((label) => topOf(label) >= start && topOf(label) < end).map((label) => {
      const copy = label.cloneNode(true);
      copy.style.top = `${topOf(label) - start}px`;
      return copy;
    });
    return made("div", { class: "line" }, slice(canvas, start, end - start, ratio), ...copies);
  });
  return made("div", { class: "paper" }, ...lines);
}

function slice(canvas, top, height, ratio) {
  const copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: Math.round(ratio * height) });
  Object.assign(copy.style, { width: `${canvas.clientWidth}px`, maxWidth: "100%", height: "auto" });
  copy.getContext("2d", { willReadFrequently: true }).drawImage(canvas, 0, -Math.round(ratio * top));
  return copy;
}

const MOST_PIXELS = 12e6, LONGEST = 8192, SLOW = 60;

/**
 * Subclasses define `panels`, where clouds are drawn; `look`, {scale, reach, selected}, or null while there is nothing
 * to draw; and `layOut()`, which computes the layout. They also handle all input other than turning and zooming.
 */
export class CloudCanvas {
  /** `turned()` is called when the user has turned the camera, which other canvases may share. */
  constructor(canvas, camera, palettes, turned) {
    Object.assign(this, { canvas, camera, palettes, turned });
    this.waiting = this.slow = this.printing = this.unseen = false;
    this.renderer = new Renderer(canvas, () => this.redraw());
    this.hand = listenToHand(canvas, {
      turn: (right, down) => this.drag(right, down),
      magnify: (factor) => { camera.magnify(factor); this.moved(); },
      hover: (event) => this.hover(event), press: (event) => this.press(event), leave: () => this.leave(),
      rest: () => this.rest(),
    });
    canvas.addEventListener("keydown", (event) => this.key(event));
    new IntersectionObserver((entries) => {
      this.unseen = !entries.at(-1).isIntersecting;
      this.redraw();
    }, { rootMargin: "100px" }).observe(canvas);
    dark.addEventListener("change", () => this.paint());
    for (const [name, printing] of [["beforeprint", true], ["afterprint", false]])
      window.addEventListener(name, () => this.print(printing));
    this.paint();
  }

  key(event) { if (turnByKey(event, this.camera)) this.moved(); }
  hover() {}
  press() {}
  leave() {}
  rest() { this.redraw(); }

  drag(right, down) {
    this.camera.turn(right, down);
    this.moved();
  }

  /** True while the user is turning the clouds. */
  get held() { return this.hand.held(); }

  /** Redraw after the camera has changed. */
  moved() {
    this.redraw();
    this.turned();
  }

  paint() {
    this.renderer.palette = this.palettes[scheme(this.printing).name];
    this.redraw();
  }

  /** Positioned elements over the canvas that are printed with it. */
  get over() { return []; }

  print(printing) {
    this.printing = printing;
    this.paper?.remove();
    this.canvas.hidden = false;
    this.paint();
    this.draw();
    if (printing) this.canvas.before(this.paper = onPaper(this.canvas, this.over, this.panels));
    this.canvas.hidden = printing;
  }

  /** Set the size in pixels of the screen, within the limits of a canvas; the arguments are in CSS pixels. */
  size(width, height) {
    const fine = Math.max(window.devicePixelRatio || 1, this.printing ? 2 : 1);
    const ratio = Math.min(fine, LONGEST / Math.max(width, height), Math.sqrt(MOST_PIXELS / (width * height)));
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== pixels[0]) this.canvas.width = pixels[0];
    if (this.canvas.height !== pixels[1]) this.canvas.height = pixels[1];
  }

  redraw() {
    if (this.waiting || this.unseen) return;
    this.waiting = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.waiting = false;
    const { look } = this;
    if (!look || !this.canvas.clientWidth) return;
    const begun = performance.now(), { held } = this, { paper, empty } = scheme(this.printing);
    // Without a graphics processor, only every fourth point is drawn while the user turns the clouds.
    this.renderer.draw(this.panels, this.camera, { ...look, paper, empty, every: this.slow && held ? 4 : 1 });
    if (held && !this.slow) {
      this.renderer.finish();
      this.slow = performance.now() - begun > SLOW;
    }
  }
}
