/* The shape itself, once for each model, with a brush: all points, those that are gone as rings. */
import { CloudCanvas } from "./canvas.mjs";
import { placesIn } from "./picking.mjs";

const GAP = 10;

export class ShapeView extends CloudCanvas {
  /** `on`: {turned(), brush(points), rest()}; `brush` is called with the numbers of the points under the brush. */
  constructor(canvas, camera, palettes, on) {
    super(canvas, camera, palettes, on.turned);
    Object.assign(this, { on, mode: "turn", radius: 24, count: 1, panels: [] });
    for (const name of ["pointerdown", "pointermove"]) canvas.addEventListener(name, (event) => this.#brush(event));
  }

  /** Turn by hand, or brush "away" or "back". */
  choose(mode) {
    this.mode = mode;
    this.canvas.classList.toggle("brushing", mode !== "turn");
  }

  /** Int16Array [3 n], and codes of `count` pictures of them, Uint16Array [count * n]; `reach` as in `MapsView`. */
  show(positions, codes, count, reach, scale) {
    Object.assign(this, { positions, count, look: { scale, reach, selected: -1 } });
    this.renderer.points = positions;
    this.renderer.codes = codes;
    this.place();
  }

  place() {
    const { clientWidth: width, clientHeight: height } = this.canvas, own = (width - GAP * (this.count - 1)) / this.count;
    this.panels = Array.from({ length: this.count }, (_, index) => (
      { index, mark: -1, left: index * (own + GAP), top: 0, width: own, height }
    ));
    this.size(width, height);
    this.redraw();
  }

  get held() { return this.mode === "turn" && super.held; }

  drag(right, down) { if (this.mode === "turn") super.drag(right, down); }

  rest() {
    this.redraw();
    this.on.rest();
  }

  #brush(event) {
    if (this.mode === "turn" || !(event.buttons & 1)) return;
    const box = this.canvas.getBoundingClientRect(), [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const panel = this.panels.find((one) => x >= one.left && x < one.left + one.width) ?? this.panels[0];
    const places = placesIn(panel, { positions: this.positions, camera: this.camera, reach: this.look.reach }), under = [];
    for (let i = 0; 3 * i < this.positions.length; i++) {
      const [right, down] = places(i);
      if (Math.hypot(right - x, down - y) < this.radius) under.push(i);
    }
    if (under.length) this.on.brush(under);
  }
}
