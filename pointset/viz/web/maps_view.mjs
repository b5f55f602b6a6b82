/* The part of a page that shows attention: all maps of a layer turn together, and a click enlarges one. */
import { panelAt, positionsIn, pointAt } from "./camera.mjs";
import { chosenMaps, Controls, Labels, showPalettes, showTicks } from "./controls.mjs";
import { element, say } from "./elements.mjs";
import { PanelsView } from "./panels.mjs";

export class MapsView extends PanelsView {
  /**
   * `positions`: Int16Array [3 n], in radii of the cloud, times 32,767; `reach`: their extent, see `reachOf`;
   * `palettes` by scheme; `first`: index of the layer to open. `turned()` is called when the user has turned the view.
   */
  constructor({ camera, positions, reach, palettes, layers, first, order, turned }) {
    super(camera, palettes, turned);
    Object.assign(this, { positions, reach, selected: -1 });
    this.labels = new Labels((index) => this.enlarge(index));
    this.controls = new Controls(order, () => this.#chosen());
    showPalettes(palettes);
    this.controls.show(layers, first);
  }

  get layer() { return this.controls.layer; }

  get look() {
    const { positions, reach, selected, layer: { codes, scale } } = this;
    return { positions, codes, scale, reach, selected };
  }

  /**
   * Replace the points, and the layers by others with the same names and sizes. The maps are rearranged only if
   * `settled`, so that nothing jumps while the user drags.
   */
  update(positions, layers, settled) {
    this.positions = positions;
    this.controls.layers = layers;
    if (settled) this.controls.choose({});
    this.redraw();
  }

  /** Replace points and layers, and open the layer with index `first`. */
  replace(positions, layers, reach, first) {
    this.close();
    Object.assign(this, { positions, reach });
    this.controls.show(layers, first);
  }

  /** The position of a point in a panel, in pixels of the canvas. */
  positionOf(panel, point) { return positionsIn(panel, this.camera, this.look)(point).slice(0, 2); }

  titleOf(index) { return [this.layer.nameOf(index), `${this.layer.name}, ${this.layer.noteOf(index)}`]; }

  focus(index) { this.labels.focus(index); }

  arrange(width) {
    const { layer, reach } = this, aspect = Math.max(0.7, Math.min(1.4, reach[1] / reach[0]));
    return this.labels.show(layer, chosenMaps(layer, this.controls.choice), width, aspect);
  }

  #chosen() {
    showTicks(this.layer.ticks);
    this.layOut();
  }

  hover(event) {
    const { offsetX: x, offsetY: y } = event, panel = panelAt(this.panels, x, y), tip = element("tip");
    const attended = (point) => this.layer.relative(panel.index, point) > 1;
    const point = panel ? pointAt(panel, x, y, this.camera, this.look, attended) : -1;
    tip.hidden = point < 0;
    if (point >= 0) {
      say(tip, this.layer.describe(panel.index, point));
      const left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 4));
      Object.assign(tip.style, { left: `${left}px`, top: `${Math.max(event.clientY - 52, 2)}px` });
    }
    if (point !== this.selected) { this.selected = point; this.redraw(); }
  }

  leave() {
    element("tip").hidden = true;
    if (this.selected >= 0) { this.selected = -1; this.redraw(); }
  }
}
