/* Which maps are shown, their order and layout, and the text above them. */
import { element, made, roving } from "./elements.mjs";

const HEAD = 24, LABEL = 18, GAP = 6;
const MOST_COLUMNS = 8, LARGEST = 340, FEW = 8;

/** Maps with at least this spread are treated as uniform. */
export const UNIFORM = 0.98;

export function isUniform(layer, index) { return layer.spread[index] >= UNIFORM; }

/**
 * Groups of maps {head, indices} for a choice {heads, order, hide}. There is one group for each head; if the order is
 * "sharpest", or if heads have only one map, there is a single group whose `head` is null.
 */
export function chosenMaps(layer, { heads, order, hide }) {
  const all = Array.from({ length: layer.count }, (_, index) => index);
  const kept = all.filter((index) => heads.has(layer.head(index)) && !(hide && isUniform(layer, index)));
  if (order === "sharpest") kept.sort((a, b) => layer.spread[a] - layer.spread[b] || a - b);
  if (order === "sharpest" || layer.rows.length === 1) return [{ head: null, indices: kept }];
  const groups = layer.heads.map((head) => ({ head, indices: kept.filter((index) => layer.head(index) === head) }));
  return groups.filter((group) => group.indices.length);
}

/** Positions of panels and of group headings, in pixels; `width` is at least 1, `aspect` is height / width. */
export function arranged(groups, width, aspect) {
  const widest = Math.max(1, ...groups.map((group) => group.indices.length));
  const least = widest <= FEW ? 150 : 104;
  const columns = Math.max(1, Math.min(MOST_COLUMNS, widest, Math.floor((width + GAP) / (least + GAP))));
  const size = Math.floor(Math.min((width - GAP * (columns - 1)) / columns, LARGEST));
  const tall = Math.round(size * aspect);
  const panels = [], headings = [];
  let top = 0;
  for (const { head, indices } of groups) {
    if (head !== null) {
      headings.push({ head, top });
      top += HEAD;
    }
    for (const [i, index] of indices.entries()) {
      const left = (i % columns) * (size + GAP), above = top + Math.floor(i / columns) * (tall + LABEL + GAP);
      panels.push({ index, left, top: above + LABEL, width: size, height: tall });
    }
    top += Math.ceil(indices.length / columns) * (tall + LABEL + GAP) + GAP;
  }
  return { panels, headings, columns, height: Math.max(top, 1), label: LABEL };
}

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
    const both = `${width > 140 ? "head " : ""}${head} · ${row}`;
    const name = layer.rows.length === 1 ? `head ${head}` : grouped ? `${row}` : both;
    const style = { left: `${left}px`, top: `${top - label}px`, width: `${width}px`, height: `${height + label}px` };
    const attributes = { type: "button", class: "map", value: index, style, onclick: () => this.enlarge(index) };
    return made(
      "button", { ...attributes, "aria-label": `${layer.nameOf(index)}, spread ${spread}: enlarge` },
      made("span", {}, name), made("span", { class: "spread" }, width > 140 ? `spread ${spread}` : spread),
    );
  }

  #heading(layer, { head, top }) {
    const difference = layer.differences[head];
    const note = difference === undefined ? "" : `its maps differ by ${difference.toFixed(2)}`;
    const style = { top: `${top}px` };
    return made("div", { class: "head", style }, `head ${head}`, made("span", { class: "spread" }, note));
  }
}
