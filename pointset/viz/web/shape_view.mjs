/* The shape itself, once for each model, with a brush: all points, those that are gone as rings. */
import { Renderer } from "./drawing.mjs";
import { listenToHand, turnByKey } from "./gestures.mjs";
import { placesIn } from "./picking.mjs";
import { scheme } from "./scheme.mjs";

const GAP = 10, MOST_RATIO = 2;

export class ShapeView {
  /** `on`: {turned(), brush(points), rest()}; `brush` is called with the numbers of the points under the brush. */
  constructor(canvas, camera, on) {
    Object.assign(this, { canvas, camera, on, mode: "turn", radius: 24, count: 1, panels: [] });
    this.renderer = new Renderer(canvas, () => this.redraw());
    const turned = () => { this.redraw(); on.turned(); };
    listenToHand(canvas, {
      turn: (right, down) => { if (this.mode === "turn") { camera.turn(right, down); turned(); } },
      magnify: (factor) => { camera.magnify(factor); turned(); },
      hover: () => {}, press: () => {}, leave: () => {},
      rest: () => on.rest(),
    });
    canvas.addEventListener("keydown", (event) => { if (turnByKey(event, camera)) turned(); });
    for (const name of ["pointerdown", "pointermove"]) canvas.addEventListener(name, (event) => this.#brush(event));
  }

  /** Turn by hand, or brush "away" or "back". */
  choose(mode) {
    this.mode = mode;
    this.canvas.classList.toggle("brushing", mode !== "turn");
  }

  /** Int16Array [3 n], and codes of `count` pictures of them, Uint16Array [count * n]; `reach` as in `MapsView`. */
  show(positions, codes, count, reach, scale) {
    Object.assign(this, { positions, count, reach, scale });
    this.renderer.points = positions;
    this.renderer.codes = codes;
    this.place();
  }

  place() {
    const { clientWidth: width, clientHeight: height } = this.canvas, ratio = Math.min(MOST_RATIO, devicePixelRatio || 1);
    const own = (width - GAP * (this.count - 1)) / this.count;
    this.panels = Array.from({ length: this.count }, (_, index) => (
      { index, mark: -1, left: index * (own + GAP), top: 0, width: own, height }
    ));
    const pixels = [Math.round(width * ratio), Math.round(height * ratio)];
    if (this.canvas.width !== pixels[0]) this.canvas.width = pixels[0];
    if (this.canvas.height !== pixels[1]) this.canvas.height = pixels[1];
    this.redraw();
  }

  redraw() {
    if (!this.waiting) requestAnimationFrame(() => this.draw());
    this.waiting = true;
  }

  draw() {
    this.waiting = false;
    if (!this.positions || !this.canvas.clientWidth) return;
    const { paper, empty } = scheme();
    this.renderer.draw(this.panels, this.camera, { scale: this.scale, reach: this.reach, selected: -1, paper, empty, every: 1 });
  }

  #brush(event) {
    if (this.mode === "turn" || !(event.buttons & 1)) return;
    const box = this.canvas.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const panel = this.panels.find((one) => x >= one.left && x < one.left + one.width) ?? this.panels[0];
    const places = placesIn(panel, { positions: this.positions, camera: this.camera, reach: this.reach }), under = [];
    for (let i = 0; 3 * i < this.positions.length; i++) {
      const [right, down] = places(i);
      if (Math.hypot(right - x, down - y) < this.radius) under.push(i);
    }
    if (under.length) this.on.brush(under);
  }
}
