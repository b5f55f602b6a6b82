/* The gallery: the attention of one head and row of a layer on many shapes, which turn together. */
import { Camera, reachOf } from "./camera.mjs";
import { palettesOf, showPalettes, showTicks } from "./controls.mjs";
import { element, listenToKeys, made, roving, say } from "./elements.mjs";
import { fromBase64 } from "./maps.mjs";
import { PanelsView } from "./panels.mjs";

class Gallery extends PanelsView {
  constructor(data) {
    const positions = new Int16Array(fromBase64(data.positions)), camera = new Camera(data.camera);
    const palettes = palettesOf(data), reach = reachOf(positions, camera);
    super(camera, palettes);
    let first = 0;
    this.clouds = data.counts.map((count, index) => ({ index, count, first, at: (first += count) - count, mark: -1 }));
    Object.assign(this, { data, positions, reach });
    showPalettes(palettes);
    this.#label();
    element("layer").append(...data.layers.map(({ name }, i) => made("option", { value: i }, name)));
    element("layer").value = data.first;
    element("layer").onchange = () => this.#open();
    element("head").onchange = element("order").onchange = () => this.#order();
    element("row").onchange = () => this.#show();
    for (const [id, by] of [["row-before", -1], ["row-after", 1]]) element(id).onclick = () => {
      const { options, selectedIndex } = element("row");
      element("row").selectedIndex = (selectedIndex + by + options.length) % options.length;
      this.#show();
    };
    this.#open();
  }

  get layer() { return this.data.layers[element("layer").value]; }

  /** Show another layer. */
  #open() {
    const { heads, row_name, scores, ticks, meaning } = this.layer;
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
    const { rows, reach, scores, codes } = this.layer, map = Number(element("head").value) * rows + Number(element("row").value);
    const values = Uint16Array.from(new Uint8Array(fromBase64(codes[map])), (code) => code * 257);
    const scale = { low: -reach, high: reach, reach };
    this.look = { positions: this.positions, codes: values, scale, reach: this.reach, selected: -1 };
    const texts = Object.entries(scores).map(([name, own]) => `${name} ${own[map].toFixed(2)} (${this.data.scores[name]})`);
    say(element("numbering"), texts.join("; "));
    this.redraw();
  }

  #label() {
    const box = element("labels");
    box.classList.add("gallery");
    this.data.shapes.forEach(({ name, label, predicted, probability, wrong }, index) => {
      if (label !== this.data.shapes[index - 1]?.label) box.append(made("div", { class: "head" }, label));
      const text = `${name.split("/").pop()}: ${wrong ? "✗ " : ""}${predicted} ${Math.round(100 * probability)} %`;
      const attributes = { type: "button", class: "map shape", value: index, title: name, "aria-label": `${label}, ${text}: enlarge` };
      const content = [made("div"), made("span", { class: wrong ? "wrong" : "" }, text)];
      box.append(made("button", { ...attributes, onclick: () => this.enlarge(index) }, ...content));
    });
    const columns = () => getComputedStyle(box).gridTemplateColumns.split(" ").length;
    const reach = roving(box, () => ({ ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns(), ArrowUp: -columns() }));
    reach(0);
  }

  titleOf(index) {
    const { name, label, predicted, probability } = this.data.shapes[index], { row_name } = this.layer;
    const row = `head ${element("head").value}, ${row_name} ${element("row").value}`;
    return [`${name}: ${label}`, `predicted: ${predicted} (${Math.round(100 * probability)} %); ${this.layer.name}, ${row}`];
  }

  focus(index) { element("labels").querySelectorAll("button")[index].focus({ preventScroll: true }); }

  arrange() {
    const boxes = element("labels").querySelectorAll("button");
    return [...boxes].map(({ offsetLeft: left, offsetTop: top, clientWidth: side }, i) => (
      { ...this.clouds[i], left, top, width: side, height: side }
    ));
  }
}

const data = JSON.parse(element("data").textContent);
say(element("title"), data.title);
listenToKeys();
window.pointset = new Gallery(data);
