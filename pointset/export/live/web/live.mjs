/* The live page: trained models classify a shape while the user changes it. */
import { Side } from "./answers.mjs";
import { Camera, reachOf } from "../../../viz/web/camera.mjs";
import { palettesOf } from "../../../viz/web/controls.mjs";
import { element, listenToKeys, made, say } from "../../../viz/web/elements.mjs";
import { listenToControls } from "./live_controls.mjs";
import { codeOf, colourOf, importance, LiveLayer, SCALE } from "./live_maps.mjs";
import { fromBase64 } from "../../../viz/web/maps.mjs";
import { MapsView } from "../../../viz/web/maps_view.mjs";
import { Model } from "./modules.mjs";
import { ask, descending, Question } from "./questions.mjs";
import { ShapeView } from "./shape_view.mjs";
import { readShape, samplePoints } from "./shapes.mjs";

const MOST_POINTS = 2048, SETTLE = 250, SEED = 0;
const NONE = "no second model";

class Live {
  constructor(data) {
    Object.assign(this, { data, models: {} });
    this.camera = new Camera(data.camera);
    this.palettes = palettesOf(data);
    this.shapes = data.shapes.map(({ name, points, size }) => {
      const vertices = Float64Array.from(new Int16Array(fromBase64(points)), (code) => (code / 32767) * size);
      return { name, vertices, triangles: null };
    });
    const names = data.models.map((model) => model.name), begin = () => this.begin();
    this.sides = [new Side(names, 1, begin), new Side([NONE, ...names], 2, begin)];
    this.sides[1].select.value = names[1] ?? NONE;
    this.chosenPoints = listenToControls(this);
    this.shapeView = new ShapeView(element("shape"), this.camera, this.palettes, {
      turned: () => this.view?.redraw(), brush: (points) => this.brush(points), rest: () => this.#settle(),
    });
    new ResizeObserver(() => this.shapeView.layOut()).observe(element("shape"));
    this.open(0);
  }

  /** The sides (first and second model) for which a model is chosen. */
  get asked() { return this.sides.filter((side) => side.chosen !== NONE); }

  /** The model with this name, decoded when it is first used. */
  model(name) { return (this.models[name] ??= new Model(this.data.models.find((model) => model.name === name))); }

  /** Open the shape with this number, rotated to z up. Files come last, and may have another upward axis. */
  open(number) {
    const shape = this.shapes[number], chosen = element("up").value, isFile = number >= this.data.shapes.length;
    const up = !isFile ? "z" : chosen !== "auto" ? chosen : /\.obj$/i.test(shape.name) ? "y" : "z";
    const fromY = (x, i, v) => [x, -v[i + 1], v[i - 1]][i % 3];
    const vertices = up === "z" ? shape.vertices : shape.vertices.map(fromY);
    this.points = samplePoints({ ...shape, vertices }, MOST_POINTS, SEED);
    say(element("shape-name"), shape.name);
    say(element("upward"), isFile ? `upward axis: ${up}; choose another one if the shape lies on its side` : "");
    this.begin();
  }

  /** Open a file of the user; if it cannot be read, show why and keep the current shape. */
  async read(file) {
    try {
      const shape = readShape(new Uint8Array(await file.arrayBuffer()), file.name), number = this.shapes.length;
      this.shapes.push({ ...shape, name: file.name });
      this.open(number);
      element("shapes").append(made("option", { value: number }, file.name));
      element("shapes").value = number;
    } catch (error) {
      say(element("fault"), error.message);
    }
  }

  /** Start again with the current shape, the chosen models, and the number of points that the slider shows. */
  begin() {
    const how = this.question?.how;
    this.question = new Question(this.points.subarray(0, 3 * this.chosenPoints()), SEED);
    if (how) this.question.how = how;
    const { base, count, isPosed } = this.question, all = Array.from({ length: count }, (_, i) => i);
    for (const side of this.sides) side.box.classList.toggle("empty", side.chosen === NONE);
    for (const side of this.asked) side.begin(isPosed ? ask(this.model(side.chosen), base, all) : null);
    say(element("fault"), "");
    this.#soon(true);
  }

  brush(points) {
    const away = this.shapeView.mode === "away";
    for (const point of points) if (point < this.question.count) this.question.gone[point] = away ? 1 : 0;
    this.#changed();
  }

  /** Change some of the manipulations {turn, tilt, jitter, drop, background}. */
  pose(changes) {
    Object.assign(this.question.how, changes);
    this.#changed();
  }

  restore() {
    this.question.gone.fill(0);
    this.#changed();
  }

  /** Remove the 10 % of the remaining points with the highest importance for the first model. */
  removeLookedAt() {
    const left = this.question.left(), { importance: values, indices } = this.answers[0];
    const order = descending(left.map((point) => values[indices.get(point)]));
    for (const i of order.slice(0, Math.ceil(left.length / 10))) this.question.gone[left[i]] = 1;
    this.#changed();
  }

  /** Show the maps of the first (0) or second (1) model. */
  showMaps(number) {
    this.mapped = number;
    this.#soon(true);
  }

  #changed() {
    say(element("fault"), "");
    this.#soon(false);
    this.#settle();
  }

  #settle() {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => this.#soon(true), SETTLE);
  }

  #soon(settled) {
    this.settled ||= settled;
    if (!this.waiting) requestAnimationFrame(() => { this.waiting = false; this.answer(); });
    this.waiting = true;
  }

  /** Run all models, and show their predictions and maps. */
  answer() {
    const { question } = this, posed = question.posed(), seen = question.seen(posed);
    if (!seen.length) {
      say(element("fault"), "no points are left: restore some");
      return;
    }
    const indices = new Map(seen.map((point, i) => [point, i])), share = question.left().length / question.count;
    this.answers = this.asked.map((side) => {
      const model = this.model(side.chosen), maps = [], logits = ask(model, posed, seen, maps);
      side.show(model, logits, share);
      return { side, model, maps, indices, importance: importance(maps, seen.length) };
    });
    Object.assign(this, { posed, seen });
    say(element("left"), `${seen.length.toLocaleString("en")} of ${question.count.toLocaleString("en")} points`);
    this.#draw();
    this.settled = false;
  }

  #draw() {
    const { question, posed, seen } = this, total = posed.length / 3;
    const positions = this.#positions(Array.from({ length: total }, (_, i) => i));
    const reach = reachOf(positions, this.camera);
    const codes = new Uint16Array(this.answers.length * total);
    this.answers.forEach(({ importance: values }, number) => {
      // Code 0 would be drawn as a ring, but in the shape, rings are removed points.
      seen.forEach((point, i) => { codes[number * total + point] = Math.max(1, codeOf(values[i])); });
    });
    const captions = this.answers.map(({ side, maps }) => `${side.chosen}: ${colourOf(maps)}`);
    if (element("names").textContent !== captions.join(""))
      element("names").replaceChildren(...captions.map((caption) => made("span", {}, caption)));
    this.shapeView.show(positions, codes, this.answers.length, reach, SCALE);
    this.#drawMaps(this.#positions(seen), reach);
  }

  #drawMaps(positions, reach) {
    const { side, maps } = this.answers.at(this.mapped ?? 0) ?? this.answers[0], { camera, palettes } = this;
    const shown = maps.filter((map) => map.points_are !== "neither");
    const layers = shown.map((map) => new LiveLayer(map, this.seen.length));
    for (const id of ["controls", "legend", "stage"]) element(id).hidden = !layers.length;
    if (!layers.length) return;
    const names = `${side.chosen} ${layers.map((layer) => `${layer.name} ${layer.count}`)}`;
    const first = Math.max(0, layers.findIndex((layer) => layer.kind === "pools"));
    if (!this.view) {
      const turned = () => this.shapeView.redraw();
      this.view = new MapsView({ camera, positions, reach, palettes, layers, first, order: "sharpest", turned });
    } else if (names !== this.names) this.view.replace(positions, layers, reach, first);
    else this.view.update(positions, layers, this.settled);
    this.names = names;
  }

  /** The points with these indices, centred and scaled by the frame of the shape, as 16-bit integers. */
  #positions(points) {
    const { middle, radius } = this.question.frame, positions = new Int16Array(3 * points.length);
    points.forEach((from, to) => {
      for (let k = 0; k < 3; k++) {
        const local = (this.posed[3 * from + k] - middle[k]) / radius;
        positions[3 * to + k] = Math.round(32767 * Math.max(-1, Math.min(1, local)));
      }
    });
    return positions;
  }
}

const data = JSON.parse(element("data").textContent);
say(element("title"), data.title);
listenToKeys();
window.pointset = new Live(data);
