/* A canvas of clouds that turn together. */
import { listenToHand, turnByKey } from "./camera.mjs";
import { rendererFor } from "./renderer.mjs";

const COLORS = {
  light: { paper: [1, 1, 1], empty: [0.72, 0.72, 0.72] },
  dark: { paper: [0.078, 0.075, 0.094], empty: [0.42, 0.42, 0.44] },
};
const dark = matchMedia("(prefers-color-scheme: dark)");

const MOST_PIXELS = 12e6, LONGEST = 8192;

/**
 * Subclasses define `panels`, where clouds are drawn; `look`, {positions, codes, scale, reach, selected}, or null while
 * there is nothing to draw; and `layOut()`, which computes the layout. They also handle input other than turning and
 * zooming.
 */
export class CloudCanvas {
  /** `turned()` is called when the user has turned the camera, which other canvases may share. */
  constructor(canvas, camera, palettes, turned) {
    Object.assign(this, { canvas, camera, palettes, turned });
    this.waiting = this.unseen = false;
    this.renderer = rendererFor(canvas, () => this.redraw());
    listenToHand(canvas, this);
    canvas.addEventListener("keydown", (event) => { if (turnByKey(event, camera)) this.moved(); });
    new IntersectionObserver((entries) => {
      this.unseen = !entries.at(-1).isIntersecting;
      this.redraw();
    }, { rootMargin: "100px" }).observe(canvas);
    dark.addEventListener("change", () => this.redraw());
  }

  hover() {}
  press() {}
  leave() {}
  rest() {}

  drag(right, down) {
    this.camera.turn(right, down);
    this.moved();
  }

  magnify(factor) {
    this.camera.magnify(factor);
    this.moved();
  }

  /** Redraw after the camera has changed. */
  moved() {
    this.redraw();
    this.turned();
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
    const scheme = dark.matches ? "dark" : "light";
    this.renderer.draw(this.panels, this.camera, { ...look, ...COLORS[scheme], palette: this.palettes[scheme] });
  }
}
