/* The shape, once for each model, with a brush. Removed points are drawn as rings. */
import { placesIn } from "./camera.mjs";
import { CloudCanvas } from "./canvas.mjs";

const GAP = 10, STEP = 12;
const STEPS = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };

export class ShapeView extends CloudCanvas {
  /**
   * `cursor`: an element over the canvas that shows the position of the keyboard's brush. `on`: {turned(),
   * brush(points), rest()}; `brush` is called with the indices of the points under the brush.
   */
  constructor(canvas, camera, palettes, cursor, on) {
    super(canvas, camera, palettes, on.turned);
    Object.assign(this, { on, cursor, at: null, mode: "turn", radius: 24, count: 1, panels: [] });
    for (const name of ["pointerdown", "pointermove"]) canvas.addEventListener(name, (event) => this.#drag(event));
    canvas.addEventListener("blur", () => { cursor.hidden = true; });
  }

  /** Choose what dragging does: "turn", brush "away", or bring "back". */
  choose(mode) {
    this.mode = mode;
    this.canvas.classList.toggle("brushing", mode !== "turn");
    this.cursor.hidden = true;
  }

  /** Show positions, Int16Array [3 n], in `count` pictures with codes, Uint16Array [count * n]. */
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

  /** While brushing, arrow keys move the keyboard's brush, and Space brushes at its position. */
  key(event) {
    const step = STEPS[event.key], { clientWidth: width, clientHeight: height } = this.canvas;
    if (this.mode === "turn" || event.ctrlKey || event.altKey || event.metaKey || !(step || event.key === " ")) {
      super.key(event);
      return;
    }
    event.preventDefault();
    const [x, y] = this.at ?? [width / this.count / 2, height / 2], [right, down] = step ?? [0, 0];
    this.at = [Math.max(0, Math.min(width, x + right)), Math.max(0, Math.min(height, y + down))];
    const { radius, canvas } = this, [left, top] = [canvas.offsetLeft + this.at[0], canvas.offsetTop + this.at[1]];
    Object.assign(this.cursor.style, {
      left: `${left - radius}px`, top: `${top - radius}px`, width: `${2 * radius}px`, height: `${2 * radius}px`,
    });
    this.cursor.hidden = false;
    if (!step) this.#brush(...this.at);
  }

  #drag(event) {
    if (this.mode === "turn" || !(event.buttons & 1)) return;
    const box = this.canvas.getBoundingClientRect();
    this.#brush(event.clientX - box.left, event.clientY - box.top);
  }

  /** Report the points under the brush at a position of the canvas. */
  #brush(x, y) {
    const panel = this.panels.find((one) => x >= one.left && x < one.left + one.width) ?? this.panels[0];
    const places = placesIn(panel, { positions: this.positions, camera: this.camera, reach: this.look.reach }), under = [];
    for (let i = 0; 3 * i < this.positions.length; i++) {
      const [right, down] = places(i);
      if (Math.hypot(right - x, down - y) < this.radius) under.push(i);
    }
    if (under.length) this.on.brush(under);
  }
}
