/* The controls above the maps, the colour bar, and which maps are shown: their order, layout and labels. */
import { element, made, roving, say } from "./elements.mjs";
import { fromBase64 } from "./maps.mjs";

const LABEL = 18, GAP = 6, APART = 14;
const MOST_COLUMNS = 8, LARGEST = 340, FEW = 8;

/**
 * Groups of maps {head, indices} for a choice {heads, order}. There is one group for each head; if the order is
 * "sharpest", or if heads have only one map, there is a single group whose `head` is null.
 */
export function chosenMaps(layer, { heads, order }) {
  const all = Array.from({ length: layer.count }, (_, index) => index);
  const kept = all.filter((index) => heads.has(layer.head(index)));
  if (order === "sharpest") kept.sort((a, b) => layer.entropy[a] - layer.entropy[b] || a - b);
  if (order === "sharpest" || layer.rows === 1) return [{ head: null, indices: kept }];
  const groups = layer.heads.map((head) => ({ head, indices: kept.filter((index) => layer.head(index) === head) }));
  return groups.filter((group) => group.indices.length);
}

/** The number of columns in which at most `count` maps, side by side, fit a width, and their size, in pixels. */
export function columnsIn(width, count) {
  const least = count <= FEW ? 150 : 104;
  const columns = Math.max(1, Math.min(MOST_COLUMNS, count, Math.floor((width + GAP) / (least + GAP))));
  return { columns, size: Math.floor(Math.min((width - GAP * (columns - 1)) / columns, LARGEST)) };
}

/** A grid of buttons over the canvas, one for each map. Calls `enlarge(index)` when a map is chosen by keyboard. */
export class Labels {
  constructor(enlarge) {
    this.enlarge = enlarge;
    const steps = () => ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: this.columns, ArrowUp: -this.columns });
    this.reach = roving(element("labels"), steps);
  }

  /**
   * Lay out the `groups` of maps (see `chosenMaps`), of height `aspect` times width, with a block of columns for each
   * model that is compared; return the panels of the maps.
   */
  show(layer, groups, width, aspect) {
    const box = element("labels"), before = box.contains(document.activeElement) ? document.activeElement.value : null;
    const { models } = layer, blocks = groups.map(({ indices }) => (
      models.map((_, model) => indices.filter((index) => layer.model(index) === model))
    ));
    const share = (width - (2 * GAP + APART) * (models.length - 1)) / models.length;
    const { columns, size } = columnsIn(share, Math.max(1, ...blocks.flat().map((block) => block.length)));
    const height = Math.round(size * aspect), block = `repeat(${columns}, ${size}px)`;
    this.columns = columns * models.length;
    Object.assign(box.style, { gap: `${GAP}px`, gridTemplateColumns: models.map(() => block).join(` ${APART}px `) });
    const place = (model, column) => ({ gridColumn: `${model * (columns + 1) + column + 1}` });
    box.replaceChildren(...models.length < 2 ? [] : models.map((name, model) => (
      made("div", { class: "model", style: { gridColumn: `${place(model, 0).gridColumn} / span ${columns}` } }, name)
    )));
    groups.forEach(({ head }, group) => {
      const name = layer.namesHeads ? `head ${head}` : "one head";
      if (head !== null) box.append(made("div", { class: "head" }, name));
      const lines = Math.ceil(Math.max(...blocks[group].map((own) => own.length)) / columns);
      for (let line = 0; line < lines; line++) blocks[group].forEach((own, model) => {
        const shown = own.slice(line * columns, (line + 1) * columns);
        box.append(...shown.map((index, column) => (
          this.#button(layer, index, { ...place(model, column), height: `${height + LABEL}px` }, size, head !== null)
        )));
      });
    });
    this.reach(0);
    if (before !== null) this.focus(before);
    return [...box.querySelectorAll("button")].map(({ value, offsetLeft: left, offsetTop: top }) => (
      { ...layer.panel(Number(value)), left, top: top + LABEL, width: size, height }
    ));
  }

  /** Move the keyboard focus to the map with this index. */
  focus(index) {
    const button = element("labels").querySelector(`button[value="${index}"]`);
    if (!button) return;
    this.reach([...element("labels").querySelectorAll("button")].indexOf(button));
    button.focus({ preventScroll: true });
  }

  #button(layer, index, style, width, grouped) {
    const note = layer.noteOf(index), [head, row] = [layer.head(index), layer.row(index)];
    const both = `${width > 140 ? "head " : ""}${head} · ${row}`;
    const name = layer.rows === 1 ? layer.rowNameOf(index) : grouped || !layer.namesHeads ? `${row}` : both;
    const attributes = { type: "button", class: "map", value: index, style, onclick: () => this.enlarge(index) };
    return made(
      "button", { ...attributes, "aria-label": `${layer.nameOf(index)}, ${note}: enlarge` },
      made("span", {}, name), made("span", { class: "entropy" }, width > 140 ? note : note.replace("entropy ", "")),
    );
  }
}

/** Palettes by the name of a scheme, Uint8Array [3 * 256] each. */
export function palettesOf({ palettes }) {
  return Object.fromEntries(Object.entries(palettes).map(([name, text]) => [name, new Uint8Array(fromBase64(text))]));
}

export function showPalettes({ light, dark }) {
  const colour = (palette, i) => `rgb(${palette.slice(3 * i, 3 * i + 3)})`;
  const places = Array.from({ length: 33 }, (_, i) => Math.min(8 * i, 255));
  const stops = places.map((i) => `light-dark(${colour(light, i)}, ${colour(dark, i)})`);
  element("gradient").style.backgroundImage = `linear-gradient(to right, ${stops})`;
}

/** `ticks`: [position from 0 to 1, text]; "1" is uniform attention. */
export function showTicks(ticks) {
  element("ticks").replaceChildren(...ticks.map(([position, text]) => {
    const style = { left: `${100 * position}%` };
    return text === "1" ? made("span", { class: "uniform", style }, "1 = uniform") : made("span", { style }, text);
  }));
}

/** Calls `changed()` whenever the user changes the `choice`, {layer, heads, order}. */
export class Controls {
  constructor(order, changed) {
    Object.assign(this, { choice: { layer: 0, heads: new Set(), order }, changed });
    const sideways = { ArrowRight: 1, ArrowLeft: -1 };
    this.reachTab = roving(element("layers"), () => sideways, (index) => this.open(index));
    element("order").value = order;
    element("order").onchange = (event) => this.choose({ order: event.target.value });
  }

  /** Show a tab for each of the layers, and open one of them. */
  show(layers, first) {
    this.layers = layers;
    element("layers").replaceChildren(...layers.map((layer, index) => {
      const attributes = { type: "button", role: "tab", "aria-controls": "stage", title: layer.meaning };
      const content = [`${layer.name} `, made("span", { class: "kind" }, layer.kind)];
      return made("button", { ...attributes, onclick: () => this.open(index) }, ...content);
    }));
    this.choice.heads = new Set();
    this.open(first);
  }

  get layer() { return this.layers[this.choice.layer]; }

  /** Open a layer; chosen heads stay chosen if it has them all, else all its heads are chosen. */
  open(index) {
    const { heads } = this.layers[index], before = this.choice.heads;
    const kept = heads.filter((head) => before.has(head)), tabs = element("layers"), tab = tabs.children[index];
    [...tabs.children].forEach((other, i) => other.setAttribute("aria-selected", i === index));
    this.reachTab(index);
    // On a narrow screen, the tabs are a scrollable strip. Scroll only the strip, not the page.
    if (tab.offsetLeft < tabs.scrollLeft || tab.offsetLeft + tab.offsetWidth > tabs.scrollLeft + tabs.clientWidth)
      tabs.scrollLeft = tab.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
    element("heads").hidden = heads.length < 2;
    element("heads").replaceChildren(made("span", {}, "heads"), ...heads.map((head) => {
      const attributes = { type: "button", value: head, "aria-label": `head ${head}` };
      return made("button", { ...attributes, onclick: () => this.#toggle(head) }, `${head}`);
    }));
    this.choose({ layer: index, heads: new Set(kept.length && kept.length === before.size ? kept : heads) });
  }

  choose(changes) {
    Object.assign(this.choice, changes);
    this.#show();
    this.changed();
  }

  #toggle(head) {
    const heads = new Set(this.choice.heads);
    if (!heads.delete(head)) heads.add(head);
    this.choose({ heads: heads.size ? heads : new Set(this.layer.heads) });
  }

  #show() {
    const { layer, choice } = this;
    for (const button of element("heads").querySelectorAll("button"))
      button.setAttribute("aria-pressed", choice.heads.has(Number(button.value)));
    element("sorting").hidden = layer.count < 2;
    const both = choice.order === "sharpest" && layer.namesHeads ? `head · ${layer.row_name}` : layer.row_name;
    const name = layer.rows < 2 && layer.namesHeads ? "head" : both;
    say(element("meaning"), layer.meaning);
    say(element("numbering"), `Above each map: ${name}, and entropy (1: uniform over the points, 0: one point only).`);
  }
}
