/* The gallery: one head and row of a layer on many shapes, which turn together. */
import { Camera, reachOf } from "./camera.mjs";
import { CloudCanvas } from "./canvas.mjs";
import { palettesOf, showPalettes, showTicks } from "./controls.mjs";
import { element, made, say } from "./elements.mjs";
import { fromBase64 } from "./maps.mjs";

class Gallery extends CloudCanvas {
  constructor(data) {
    const positions = new Int16Array(fromBase64(data.positions)), camera = new Camera(data.camera);
    const palettes = palettesOf(data), reach = reachOf(positions, camera);
    super(element("canvas"), camera, palettes, () => {});
    let first = 0;
    this.clouds = data.counts.map((count) => ({ count, first: (first += count) - count, index: 0, mark: -1 }));
    Object.assign(this, { data, positions, reach, panels: [], total: first });
    showPalettes(palettes);
    this.#label();
    element("layer").append(...data.layers.map(({ name }, i) => made("option", { value: i }, name)));
    element("layer").value = data.first;
    element("layer").onchange = () => this.#open();
    element("head").onchange = element("order").onchange = () => this.#order();
    element("row").onchange = () => this.#show();
    for (const [id, by] of [["previous", -1], ["next", 1]]) element(id).onclick = () => {
      const { options, selectedIndex } = element("row");
      element("row").selectedIndex = (selectedIndex + by + options.length) % options.length;
      this.#show();
    };
    new ResizeObserver(() => this.layOut()).observe(element("frame"));
    this.#open();
  }

  get layer() { return this.data.layers[element("layer").value]; }

  /** Show another layer. */
  #open() {
    const { heads, row_name, scores, ticks, meaning } = this.layer;
    this.codes = new Uint8Array(fromBase64(this.layer.codes));
    element("head").replaceChildren(...Array.from({ length: heads }, (_, i) => made("option", {}, `${i}`)));
    element("order").replaceChildren(...Object.keys(scores).map((name) => made("option", {}, name)));
    say(element("row-name"), row_name);
    say(element("meaning"), meaning);
    showTicks(ticks);
    this.#order();
  }

  /** List the rows of the head in the chosen order: the lowest entropy, or else the highest score, first. */
  #order() {
    const { rows, scores } = this.layer, name = element("order").value, head = Number(element("head").value);
    const score = (row) => scores[name][head * rows + row] * (name === "entropy" ? 1 : -1);
    const order = Array.from({ length: rows }, (_, row) => row).sort((a, b) => score(a) - score(b));
    element("row").replaceChildren(...order.map((row) => (
      made("option", { value: row }, `${row} (${name} ${scores[name][head * rows + row].toFixed(2)})`)
    )));
    this.#show();
  }

  /** Draw the chosen head and row on all shapes. */
  #show() {
    const { rows, reach, scores } = this.layer, at = Number(element("head").value) * rows + Number(element("row").value);
    const codes = Uint16Array.from(this.codes.subarray(at * this.total, (at + 1) * this.total), (code) => code * 257);
    const scale = { low: -reach, high: reach, reach };
    this.look = { positions: this.positions, codes, scale, reach: this.reach, selected: -1 };
    const texts = Object.entries(scores).map(([name, own]) => `${name} ${own[at].toFixed(2)} (${this.data.scores[name]})`);
    say(element("numbering"), texts.join("; "));
    this.redraw();
  }

  #label() {
    let before = null;
    element("labels").append(...this.data.shapes.flatMap(({ label, predicted, probability, wrong }) => {
      const heading = label === before ? [] : [made("div", { class: "head" }, label)];
      const text = `${wrong ? "✗ " : ""}${predicted} ${Math.round(100 * probability)} %`;
      before = label;
      return [...heading, made("div", { class: "shape" }, made("div"), made("span", { class: wrong ? "wrong" : "" }, text))];
    }));
  }

  layOut() {
    const { clientWidth: width } = element("frame"), boxes = element("labels").querySelectorAll(".shape");
    if (width < 1) return;
    this.panels = [...boxes].map(({ offsetLeft: left, offsetTop: top, clientWidth: side }, i) => (
      { ...this.clouds[i], left, top, width: side, height: side }
    ));
    const height = element("labels").offsetHeight;
    Object.assign(this.canvas.style, { width: `${width}px`, height: `${height}px` });
    this.size(width, height);
    this.redraw();
  }
}

const data = JSON.parse(element("data").textContent);
say(element("title"), data.title);
window.pointset = new Gallery(data);
