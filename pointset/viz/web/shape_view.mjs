/* The shape, once for each model, with a brush. Removed points are drawn as rings. */
import { panelAt, positionsIn } from "./camera.mjs";
import { CloudCanvas } from "./canvas.mjs";

const BETWEEN = 10, STEP = 12;
const MOVES = { ArrowLeft: [-STEP, 0], ArrowRight: [STEP, 0], ArrowUp: [0, -STEP], ArrowDown: [0, STEP] };

export class ShapeView extends CloudCanvas {
  /** `cursor`: an element that shows the brush of the keyboard; `on`: {turned(), brush(indices of points), rest()}. */
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
    this.layOut();
  }

  layOut() {
    const { count, canvas: { clientWidth, clientHeight: height } } = this;
    const width = (clientWidth - BETWEEN * (count - 1)) / count;
    const panel = (_, index) => ({ index, mark: -1, left: index * (width + BETWEEN), top: 0, width, height });
    this.panels = Array.from({ length: count }, panel);
    this.size(clientWidth, height);
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
    const step = MOVES[event.key], { clientWidth: width, clientHeight: height } = this.canvas;
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
    const { positions, camera, look: { reach } } = this, panel = panelAt(this.panels, x, y) ?? this.panels[0];
    const positionOf = positionsIn(panel, { positions, camera, reach });
    const under = Array.from({ length: positions.length / 3 }, (_, i) => i).filter((i) => {
      const [right, down] = positionOf(i);
      return Math.hypot(right - x, down - y) < this.radius;
    });
    if (under.length) this.on.brush(under);
  }
}
