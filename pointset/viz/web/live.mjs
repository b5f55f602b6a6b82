/* The live page: trained models classify a shape while the user changes it. */
import { Camera, reachOf } from "./camera.mjs";
import { element, made, say } from "./elements.mjs";
import { palettesOf } from "./legend.mjs";
import { codeOf, colourOf, importance, LiveLayer, SCALE } from "./live_maps.mjs";
import { MapsView } from "./maps_view.mjs";
import { Model } from "./models.mjs";
import { ask, descending, occlusion, Question, removal } from "./questions.mjs";
import { randomFrom, samplePoints, shuffled } from "./sampling.mjs";
import { ShapeView } from "./shape_view.mjs";
import { Shapes } from "./shapes.mjs";
import { Side } from "./sides.mjs";
import { listenToControls } from "./live_controls.mjs";

const MOST_POINTS = 2048, PATCHES = 32, STEPS = 13, SETTLE = 250, SEED = 0;
/** While the user changes the shape, at most 1 / DRAWING of the time is spent on drawing. */
const DRAWING = 4;
const ORDERS = [["what it looks at", "attention"], ["by occlusion", "occlusion"], ["at random", "random"]];
const NONE = "no second model";

class Live {
  constructor(data) {
    this.data = data;
    this.camera = new Camera(data.camera);
    this.palettes = palettesOf(data);
    this.models = {};
    this.shapes = new Shapes(data.shapes);
    this.times = [];
    this.run = this.nextDrawing = 0;
    const names = data.models.map((model) => model.name);
    const side = (choices, place) => new Side(element("sides"), choices, place, () => this.#chose());
    this.sides = [names, [NONE, ...names]].map(side);
    this.sides[1].select.value = names.length > 1 ? names[1] : NONE;
    this.controls = listenToControls(this, data.shapes.map((shape) => shape.name));
    this.#markEmpty();
    this.open(0);
  }

  /** Compute the first answer before the first paint, with only one model, so that only its weights are decoded. */
  #first() {
    const afterPaint = (act) => requestAnimationFrame(() => setTimeout(act));
    this.#ask(this.asked.slice(0, 1));
    // Starting WebGL may take longer than the models.
    afterPaint(() => { this.#ask(this.asked); afterPaint(() => this.#draw()); });
  }

  /** Start WebGL, if that has not been tried yet. */
  #look() {
    if (this.shapeView || this.blind) return;
    try {
      this.shapeView = new ShapeView(element("shape"), this.camera, this.palettes, element("cursor"), {
        turned: () => this.view?.redraw(), brush: (points) => this.brush(points), rest: () => this.#settle(),
      });
    } catch (error) {
      if (error.message !== "no WebGL 2") throw error;
      this.blind = true;
      element("shape").replaceWith("This browser offers no WebGL 2: the models answer, but the shape cannot be drawn.");
      return;
    }
    new ResizeObserver(() => this.shapeView.place()).observe(element("shape"));
  }

  /** The sides for which a model is chosen. */
  get asked() { return this.sides.filter((side) => side.chosen !== NONE); }

  /** The model with this name, decoded when it is first used. */
  model(name) { return (this.models[name] ??= new Model(this.data.models.find((one) => one.name === name))); }

  /** Open the shape with this number, in the upright pose of the training shapes. */
  open(number) {
    const shape = this.shapes.at(number, element("up").value);
    this.drawn = samplePoints(shape, MOST_POINTS, SEED);
    element("shape-name").textContent = shape.name;
    element("upward").textContent = shape.told;
    element("fault").textContent = "";
    this.begin();
  }

  /** Open a file of the user; if it cannot be read, show why and keep the current shape. */
  async read(file) {
    try {
      const number = await this.shapes.add(file);
      this.open(number);
      element("shapes").append(made("option", { value: number }, file.name));
      element("shapes").value = number;
    } catch (error) {
      element("fault").textContent = error.message;
    }
  }

  /** Start again with the same shape and the number of points on the slider. */
  begin() {
    const how = this.question?.how;
    this.run++;
    this.question = new Question(this.drawn.subarray(0, 3 * this.controls.points()), SEED);
    if (how) this.question.how = how;
    const { base, count, isPosed } = this.question, all = Array.from({ length: count }, (_, i) => i);
    for (const side of this.asked) side.begin(isPosed ? ask(this.model(side.chosen), base, all, 1) : null);
    this.influence = null;
    this.#say("");
    if (this.answers) this.#settle(); else this.#first();
  }

  brush(points) {
    const away = this.shapeView.mode === "away";
    for (const point of points) if (point < this.question.count) this.question.gone[point] = away ? 1 : 0;
    this.#changed();
  }

  /** Change some of the manipulations {turn, tilt, jitter, drop, background, scale}. */
  pose(part) {
    Object.assign(this.question.how, part);
    this.#changed();
  }

  restore() {
    this.question.gone.fill(0);
    this.#changed();
  }

  /** Remove the tenth of the remaining points that have the highest importance for the first model. */
  removeLookedAt() {
    const left = this.question.left(), values = this.answers[0].importance;
    const order = descending(left.map((point) => values[this.answers[0].place.get(point)]));
    for (const at of order.slice(0, Math.ceil(left.length / 10))) this.question.gone[left[at]] = 1;
    this.#changed();
  }

  #chose() {
    this.#markEmpty();
    this.begin();
  }

  #markEmpty() { for (const side of this.sides) side.box.classList.toggle("empty", side.chosen === NONE); }

  #changed() {
    this.influence = null;
    this.run++;
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

  /** Run all models, and show their answers and maps. */
  answer() {
    if (!this.#ask(this.asked)) return;
    if (this.settled || performance.now() > this.nextDrawing) this.#draw();
    this.settled = false;
  }

  /** Limit the share of time for drawing, so that answers stay fast without a graphics processor. */
  #pace() {
    const views = [this.shapeView, this.view].filter(Boolean), begun = performance.now();
    for (const view of views) view.renderer.finish();
    const now = performance.now();
    this.nextDrawing = now + (DRAWING - 1) * (now - begun);
  }

  /** Run the models of some sides, and show their answers; return false if no points are left. */
  #ask(sides) {
    const { question } = this, posed = question.posed(), seen = question.seen(posed), begun = performance.now();
    if (!seen.length) {
      element("fault").textContent = "no points are left to ask about: bring some back";
      return false;
    }
    const place = new Map(seen.map((point, at) => [point, at])), share = question.left().length / question.count;
    this.answers = sides.map((side) => {
      const model = this.model(side.chosen), maps = [], logits = ask(model, posed, seen, question.how.scale, maps);
      side.show(model, logits, share);
      return { side, model, maps, place, importance: importance(maps, seen.length) };
    });
    // The first answers are not timed: they are slower, because the browser has not compiled the code yet.
    if (this.shapeView) this.times = [...this.times.slice(-19), (performance.now() - begun) / this.answers.length];
    Object.assign(this, { posed, seen });
    const usual = [...this.times].sort((a, b) => a - b)[Math.floor(this.times.length / 2)];
    say(element("left"), `${seen.length.toLocaleString("en")} of ${question.count.toLocaleString("en")} points`);
    say(element("pace"), usual ? `${Math.round(1000 / usual)} answers a second` : "");
    return true;
  }

  #draw() {
    this.#look();
    if (this.blind) return;
    const { question, posed, seen } = this, total = posed.length / 3;
    const positions = this.#positions(Array.from({ length: total }, (_, i) => i));
    const codes = new Uint16Array(this.answers.length * total);
    this.answers.forEach(({ importance: values }, number) => {
      const shown = this.influence?.[number] ?? values;
      // Code 0 would be drawn as a ring, which marks removed points here.
      seen.forEach((point, at) => { codes[number * total + point] = Math.max(1, codeOf(shown[at])); });
    });
    const reach = reachOf(positions, this.camera), what = this.influence ? "what each patch is worth" : null;
    const names = this.answers.map(({ side, maps }) => `${side.chosen}: ${what ?? colourOf(maps)}`);
    if (element("names").childElementCount !== names.length)
      element("names").replaceChildren(...names.map(() => made("span", {})));
    names.forEach((name, place) => say(element("names").children[place], name));
    this.shapeView.show(positions, codes, this.answers.length, reach, SCALE);
    this.#drawMaps(this.#positions(seen), reach);
    if (!this.settled) requestAnimationFrame(() => this.#pace());
  }

  #drawMaps(positions, reach) {
    const { side, maps } = this.answers.at(this.mapped ?? 0) ?? this.answers[0];
    const layers = maps.filter((map) => map.points_are !== "neither").map((map) => new LiveLayer(map, this.seen.length));
    element("stage").hidden = element("controls").hidden = !layers.length;
    if (!layers.length) return;
    const names = `${side.chosen} ${layers.map((layer) => `${layer.name} ${layer.count}`)}`;
    if (!this.view) {
      const first = layers.findIndex((layer) => layer.kind === "pools");
      this.view = new MapsView({
        camera: this.camera, positions, reach, palettes: this.palettes, layers, first: Math.max(first, 0), order: "sharpest",
        turned: () => this.shapeView.redraw(),
      });
    } else if (names !== this.names) this.view.replace(positions, layers, reach);
    else this.view.update(positions, layers, this.settled);
    this.names = names;
  }

  /** The points with these indices, in the frame of the shape and the format of the renderer. */
  #positions(numbers) {
    const { middle, radius } = this.question.frame, found = new Int16Array(3 * numbers.length);
    numbers.forEach((from, to) => {
      for (let k = 0; k < 3; k++) {
        const local = (this.posed[3 * from + k] - middle[k]) / radius;
        found[3 * to + k] = Math.round(32767 * Math.max(-1, Math.min(1, local)));
      }
    });
    return found;
  }

  /** Show the maps of the first (0) or second (1) model. */
  showMaps(number) {
    this.mapped = number;
    this.#soon(true);
  }

  /** Run generators step by step, with pauses for the browser; return their results, or null if the shape changed. */
  async #finish(generators, say) {
    const run = this.run, found = [];
    for (const generator of generators) {
      for (let step = generator.next(); ; step = generator.next()) {
        if (step.done) { found.push(step.value); break; }
        say(found.length, step.value);
        await new Promise((done) => setTimeout(done));
        if (run !== this.run) return null;
      }
    }
    return found;
  }

  #occlusions() {
    const { posed, seen, question } = this;
    const way = (side) => ({ scale: question.how.scale, label: side.best, patches: PATCHES });
    const ways = this.answers.map(({ model, side }) => occlusion(model, posed, seen, way(side)));
    return this.#finish(ways, (_, patch) => this.#say(`removing patch ${patch + 1}`));
  }

  /** Colour the points by how much the log-probability of the answer falls without their patch. */
  async occlude() {
    const found = await this.#occlusions();
    this.#say(found ? "coloured by what the answer loses without each patch" : "");
    if (!found) return;
    this.influence = found.map((falls) => {
      const most = Math.max(...falls.map(Math.abs), 1e-6);
      return falls.map((fall) => 2 ** ((4 * fall) / most));
    });
    this.#draw();
  }

  /** Remove points in three orders, and draw the probability of the answer against the share of points left. */
  async compareOrders() {
    const falls = await this.#occlusions();
    if (!falls) return;
    const { posed, seen, question } = this, chance = shuffled(seen.length, randomFrom(SEED + 1));
    for (const [number, { side, model, importance: values }] of this.answers.entries()) {
      const way = { scale: question.how.scale, label: side.best, steps: STEPS, temperature: model.temperature };
      const orders = [descending(values), descending(falls[number]), chance];
      const say = (order, step) => this.#say(`${side.chosen}, ${ORDERS[order][0]}: ${step + 1} of ${STEPS}`);
      const found = await this.#finish(orders.map((order) => removal(model, posed, seen, [...order], way)), say);
      if (!found) return;
      const lines = found.map((points, order) => ({ points, name: ORDERS[order][0], style: ORDERS[order][1] }));
      side.compare(lines, model.classes[side.best]);
    }
    this.#say("");
  }

  #say(text) { element("progress").textContent = text; }
}

const data = JSON.parse(element("data").textContent);
element("title").textContent = data.title;
window.pointset = new Live(data);
