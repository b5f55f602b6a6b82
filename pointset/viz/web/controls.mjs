/* The controls and the colour bar above the maps. */
import { isUniform } from "./arrangement.mjs";
import { element, made, roving, say } from "./elements.mjs";
import { fromBase64 } from "./maps.mjs";

/** Palettes by the name of a scheme, Uint8Array [3 * 256] each. */
export function palettesOf({ palettes }) {
  return Object.fromEntries(Object.entries(palettes).map(([name, text]) => [name, new Uint8Array(fromBase64(text))]));
}

export function showPalette(palette) {
  const colour = (i) => palette.slice(3 * i, 3 * i + 3).join();
  const stops = Array.from({ length: 33 }, (_, i) => `rgb(${colour(Math.min(8 * i, 255))})`);
  element("gradient").style.background = `linear-gradient(to right, ${stops})`;
}

/** `ticks`: [position from 0 to 1, text]; "1" is uniform attention. */
export function showTicks(ticks) {
  element("ticks").replaceChildren(...ticks.map(([position, text]) => {
    const style = { left: `${100 * position}%` };
    return text === "1" ? made("span", { class: "uniform", style }, "1 = uniform") : made("span", { style }, text);
  }));
}

/** Calls `changed(choice)` with {layer, heads, order, hide} whenever the user changes the choice. */
export class Controls {
  constructor(layers, choice, changed) {
    Object.assign(this, { choice, changed });
    this.#showTabs(layers);
    const sideways = { ArrowRight: 1, ArrowLeft: -1 };
    this.reachTab = roving(element("layers"), () => sideways, (index) => this.open(index));
    element("order").value = choice.order;
    element("order").onchange = (event) => this.choose({ order: event.target.value });
    element("hide").onchange = (event) => this.choose({ hide: event.target.checked });
  }

  /** Replace the layers, and open one of them. */
  replace(layers, index) {
    this.#showTabs(layers);
    this.choice.heads = new Set();
    this.open(index);
  }

  #showTabs(layers) {
    this.layers = layers;
    element("layers").replaceChildren(...layers.map((layer, index) => {
      const attributes = { type: "button", role: "tab", "aria-controls": "stage", title: layer.meaning };
      const content = [`${layer.name} `, made("span", { class: "kind" }, layer.kind)];
      return made("button", { ...attributes, onclick: () => this.open(index) }, ...content);
    }));
  }

  get layer() { return this.layers[this.choice.layer]; }

  /** Open a layer; chosen heads stay chosen if it has them all, else all its heads are chosen. */
  open(index) {
    const { heads } = this.layers[index], before = this.choice.heads;
    const kept = heads.filter((head) => before.has(head));
    this.choose({ layer: index, heads: new Set(kept.length && kept.length === before.size ? kept : heads) });
  }

  choose(changes) {
    Object.assign(this.choice, changes);
    this.#show();
    this.changed(this.choice);
  }

  #toggle(head) {
    const heads = new Set(this.choice.heads);
    if (!heads.delete(head)) heads.add(head);
    this.choose({ heads: heads.size ? heads : new Set(this.layer.heads) });
  }

  #show() {
    const { layer, choice } = this;
    [...element("layers").children].forEach((tab, i) => tab.setAttribute("aria-selected", i === choice.layer));
    this.reachTab(choice.layer);
    // On a narrow screen, the tabs are a scrollable strip. Scroll only the strip, not the page.
    const tabs = element("layers"), tab = tabs.children[choice.layer];
    if (tab.offsetLeft < tabs.scrollLeft || tab.offsetLeft + tab.offsetWidth > tabs.scrollLeft + tabs.clientWidth)
      tabs.scrollLeft = tab.offsetLeft - (tabs.clientWidth - tab.offsetWidth) / 2;
    element("heads").hidden = layer.heads.length < 2;
    const buttons = () => [...element("heads").querySelectorAll("button")];
    if (buttons().map((button) => button.value).join() !== layer.heads.join()) {
      for (const button of buttons()) button.remove();
      element("heads").append(...layer.heads.map((head) => {
        const attributes = { type: "button", value: head, "aria-label": `head ${head}` };
        return made("button", { ...attributes, onclick: () => this.#toggle(head) }, `${head}`);
      }));
    }
    for (const button of buttons()) button.setAttribute("aria-pressed", choice.heads.has(Number(button.value)));
    const uniform = layer.spread.filter((_, index) => isUniform(layer, index)).length;
    element("hide").disabled = !uniform;
    element("sorting").hidden = layer.count < 2;
    const both = choice.order === "sharpest" ? `head · ${layer.row_name}` : layer.row_name;
    const name = layer.rows.length < 2 ? "head" : both;
    say(element("uniform"), uniform ? `hide nearly uniform maps (${uniform})` : "no map is nearly uniform");
    say(element("meaning"), layer.meaning);
    say(element("numbering"), `Above each map: ${name}, and spread (1: uniform over the points, 0: one point only).`);
    say(element("precision"), layer.precision);
  }
}
