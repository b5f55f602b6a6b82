/* A canvas of clouds that turn together. */
import { listenToHand, turnByKey } from "./camera.mjs";
import { Renderer } from "./renderer.mjs";

const COLORS = {
  light: { paper: [1, 1, 1], empty: [0.72, 0.72, 0.72] },
  dark: { paper: [0.078, 0.075, 0.094], empty: [0.42, 0.42, 0.44] },
};
const dark = matchMedia("(prefers-color-scheme: dark)");

const onPaper = document.documentElement.classList;

/** The name of the colour scheme, light on paper, and its colours of background and hollow dots. */
export function scheme() {
  const name = dark.matches && !onPaper.contains("on-paper") ? "dark" : "light";
  return { name, ...COLORS[name] };
}

const MOST_PIXELS = 12e6, LONGEST = 8192;

/**
 * Subclasses define `panels`, where clouds are drawn; `look`, {scale, reach, selected}, or null while there is nothing
 * to draw; and `layOut()`, which computes the layout. They also handle all input other than turning and zooming.
 */
export class CloudCanvas {
  /** `turned()` is called when the user has turned the camera, which other canvases may share. */
  constructor(canvas, camera, palettes, turned) {
    Object.assign(this, { canvas, camera, palettes, turned });
    this.waiting = this.unseen = false;
    this.renderer = new Renderer(canvas, () => this.redraw());
    listenToHand(canvas, {
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
    // A browser prints without another frame, so that the canvas is drawn at once, and as wide as the paper.
    for (const event of ["beforeprint", "afterprint"]) addEventListener(event, () => {
      onPaper.toggle("on-paper", event === "beforeprint");
      this.paint();
      this.layOut();
      this.draw();
    });
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

  /** Redraw after the camera has changed. */
  moved() {
    this.redraw();
    this.turned();
  }

  paint() {
    this.renderer.palette = this.palettes[scheme().name];
    this.redraw();
  }

  /** Set the size in pixels of the screen, within the limits of a canvas; the arguments are in CSS pixels. */
  size(width, height) {
    const fine = window.devicePixelRatio || 1;
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
    const { paper, empty } = scheme();
    this.renderer.draw(this.panels, this.camera, { ...look, paper, empty });
  }
}
