/* The controls and the colour bar above the maps. */
import { isUniform } from "./arrangement.mjs";
import { element, made, roving } from "./elements.mjs";
import { bytes } from "./maps.mjs";

/** Palettes by the name of a scheme, Uint8Array [3 * 256] each. */
export function palettesOf({ palettes }) {
  return Object.fromEntries(Object.entries(palettes).map(([name, text]) => [name, new Uint8Array(bytes(text))]));
}

export function showPalette(palette) {
  const stops = Array.from({ length: 33 }, (_, i) => `rgb(${[...palette.slice(3 * Math.min(8 * i, 255))].slice(0, 3)})`);
  element("gradient").style.background = `linear-gradient(to right, ${stops})`;
}

/** `ticks`: [place from 0 to 1, text]; "1" is uniform attention. */
export function showTicks(ticks) {
  element("ticks").replaceChildren(...ticks.map(([place, text]) => made(
    "span", { class: text === "1" ? "uniform" : "", style: { left: `${100 * place}%` } }, text === "1" ? "1 = uniform" : text,
  )));
}

/** Calls `changed(choice)` with {layer, heads, order, hide} whenever the user changes the choice. */
export class Controls {
  constructor(layers, choice, changed) {
    Object.assign(this, { choice, changed });
    this.#showTabs(layers);
    const sideways = { ArrowRight: 1, ArrowLeft: -1 };
    this.reachTab = roving(element("layers"), () => sideways, (place) => this.open(place));
    element("order").value = choice.order;
    element("order").onchange = (event) => this.choose({ order: event.target.value });
    element("hide").onchange = (event) => this.choose({ hide: event.target.checked });
  }

  /** Replace the layers, and open the one at `place`. */
  replace(layers, place) {
    this.#showTabs(layers);
    this.choice.heads = new Set();
    this.open(place);
  }

  #showTabs(layers) {
    this.layers = layers;
    element("layers").replaceChildren(...layers.map((layer, place) => made(
      "button", { type: "button", role: "tab", "aria-controls": "stage", title: layer.meaning, onclick: () => this.open(place) },
      `${layer.name} `, made("span", { class: "kind" }, layer.kind),
    )));
  }

  get layer() { return this.layers[this.choice.layer]; }

  /** Open a layer; chosen heads stay chosen if it has them all, else all its heads are chosen. */
  open(place) {
    const { heads } = this.layers[place];
    const kept = heads.filter((head) => this.choice.heads.has(head));
    const before = this.choice.heads.size;
    this.choice.layer = place;
    this.choice.heads = new Set(before && kept.length === before ? kept : heads);
    this.choose({});
  }

  choose(part) {
    Object.assign(this.choice, part);
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
    const buttons = [...element("heads").querySelectorAll("button")];
    if (buttons.map((button) => button.value).join() !== layer.heads.join()) {
      for (const button of buttons) button.remove();
      element("heads").append(...layer.heads.map((head) => made(
        "button", { type: "button", value: head, "aria-label": `head ${head}`, onclick: () => this.#toggle(head) }, `${head}`,
      )));
    }
    for (const button of element("heads").querySelectorAll("button"))
      button.setAttribute("aria-pressed", choice.heads.has(Number(button.value)));
    const uniform = layer.spread.filter((_, index) => isUniform(layer, index)).length;
    element("hide").disabled = !uniform;
    element("uniform").textContent = uniform ? `hide nearly uniform maps (${uniform})` : "no map is nearly uniform";
    element("sorting").hidden = layer.count < 2;
    element("meaning").textContent = layer.meaning;
    const map = layer.rows.length < 2 ? "head" : choice.order === "sharpest" ? `head · ${layer.row_name}` : layer.row_name;
    element("numbering").textContent = `Above each map: ${map}, and spread (1: uniform over the points, 0: one point only).`;
    element("precision").textContent = layer.precision;
  }
}
