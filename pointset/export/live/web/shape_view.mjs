/* The shape, one picture for each model, with a brush. Removed points are drawn as rings. */
import { panelAt, positionsIn } from "../../../viz/web/camera.mjs";
import { CloudCanvas } from "../../../viz/web/canvas.mjs";

const BETWEEN = 10;

export class ShapeView extends CloudCanvas {
  /** `on`: {turned(), brush(indices of points), rest()}. */
  constructor(canvas, camera, palettes, on) {
    super(canvas, camera, palettes, on.turned);
    Object.assign(this, { on, mode: "turn", radius: 24, count: 1, panels: [] });
    for (const name of ["pointerdown", "pointermove"]) canvas.addEventListener(name, (event) => this.#drag(event));
  }

  /** Choose what dragging does: "turn" the shape, brush points "away", or bring them "back". */
  choose(mode) {
    this.mode = mode;
    this.canvas.classList.toggle("brushing", mode !== "turn");
  }

  /** Show positions, Int16Array [3 n], in `count` pictures with codes, Uint16Array [count * n]. */
  show(positions, codes, count, reach, scale) {
    Object.assign(this, { count, look: { positions, codes, scale, reach, selected: -1 } });
    this.layOut();
  }

  layOut() {
    const { count, look, canvas: { clientWidth, clientHeight: height } } = this;
    const width = (clientWidth - BETWEEN * (count - 1)) / count, n = look ? look.positions.length / 3 : 0;
    const panel = (_, i) => ({ at: i * n, mark: -1, left: i * (width + BETWEEN), top: 0, width, height });
    this.panels = Array.from({ length: count }, panel);
    this.size(clientWidth, height);
    this.redraw();
  }

  drag(right, down) { if (this.mode === "turn") super.drag(right, down); }

  rest() { this.on.rest(); }

  /** Report the points under the brush. */
  #drag(event) {
    if (this.mode === "turn" || !(event.buttons & 1)) return;
    const { panels, camera, look } = this, { offsetX: x, offsetY: y } = event;
    const positionOf = positionsIn(panelAt(panels, x, y) ?? panels[0], camera, look);
    const under = Array.from({ length: look.positions.length / 3 }, (_, i) => i).filter((i) => {
      const [right, down] = positionOf(i);
      return Math.hypot(right - x, down - y) < this.radius;
    });
    if (under.length) this.on.brush(under);
  }
}
