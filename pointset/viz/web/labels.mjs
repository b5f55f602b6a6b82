/* Text above the maps, and a button over each for keyboards and screen readers. */
import { element, made, roving } from "./elements.mjs";

/** Calls `enlarge(index)` when a map is chosen by keyboard. */
export class Labels {
  constructor(enlarge) {
    this.enlarge = enlarge;
    this.columns = 1;
    const steps = () => ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns });
    this.reach = roving(element("labels"), steps);
  }

  show(layer, { panels, headings, columns, label }) {
    this.columns = columns;
    const grouped = headings.length > 0;
    const before = element("labels").contains(document.activeElement) ? document.activeElement.value : null;
    element("labels").replaceChildren(
      ...headings.map((heading) => this.#heading(layer, heading)),
      ...panels.map((panel) => this.#button(layer, panel, label, grouped)),
    );
    this.reach(0);
    if (before !== null) this.focus(before);
  }

  /** Move the keyboard focus to the map with this index. */
  focus(index) {
    const button = element("labels").querySelector(`button[value="${index}"]`);
    if (!button) return;
    this.reach([...element("labels").querySelectorAll("button")].indexOf(button));
    button.focus({ preventScroll: true });
  }

  #button(layer, { index, left, top, width, height }, label, grouped) {
    const spread = layer.spread[index].toFixed(2);
    const [head, row] = [layer.head(index), layer.row(index)];
    const name = layer.rows.length === 1 ? `head ${head}` : grouped ? `${row}` : `${width > 140 ? "head " : ""}${head} · ${row}`;
    const style = { left: `${left}px`, top: `${top - label}px`, width: `${width}px`, height: `${height + label}px` };
    const attributes = { type: "button", class: "map", value: index, style, onclick: () => this.enlarge(index) };
    return made(
      "button", { ...attributes, "aria-label": `${layer.nameOf(index)}, spread ${spread}: enlarge` },
      made("span", {}, name), made("span", { class: "spread" }, width > 140 ? `spread ${spread}` : spread),
    );
  }

  #heading(layer, { head, top }) {
    const difference = layer.differences[head];
    const differ = difference === undefined ? "" : `its maps differ by ${difference.toFixed(2)}`;
    return made("div", { class: "head", style: { top: `${top}px` } }, `head ${head}`, made("span", { class: "spread" }, differ));
  }
}
