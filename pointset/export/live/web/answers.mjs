/* Predictions of models: the most probable classes as bars, and the probability of a class as points are removed. */
import { element, made, say, showAnswer } from "../../../viz/web/elements.mjs";
import { descending, probabilities } from "./questions.mjs";

const MOST_CLASSES = 5, MOST_STEPS = 400;
const WIDTH = 320, HEIGHT = 120, LEFT = 30, BOTTOM = 18, TOP = 6, RIGHT = 8;

const across = (left) => LEFT + (1 - left) * (WIDTH - LEFT - RIGHT);
const down = (probability) => TOP + (1 - probability) * (HEIGHT - TOP - BOTTOM);

/** A chart of at least one point [share of points left, probability]. */
function chart(points, label) {
  const axes = [["end", 0], ["middle", 0.5], ["start", 1]].flatMap(([anchor, share]) => [
    made("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: down(share), y2: down(share), class: "grid" }),
    made("text", { x: LEFT - 4, y: down(share) + 3, "text-anchor": "end" }, `${100 * share}`),
    made("text", { x: across(share), y: HEIGHT - 4, "text-anchor": anchor }, `${100 * share} %`),
  ]);
  const [left, last] = points.at(-1), places = points.map(([share, p]) => `${across(share)},${down(p)}`).join(" ");
  const curve = [made("polyline", { points: places }), made("circle", { r: 2.5, cx: across(left), cy: down(last) })];
  return made("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, ...axes, ...curve);
}

/** The prediction of one model of the live page. */
export class Side {
  /** A menu of `names` for the first or second model (`number`); `changed()` is called when the choice changes. */
  constructor(names, number, changed) {
    const options = names.map((name) => made("option", {}, name));
    this.select = made("select", { "aria-label": `model ${number}`, onchange: changed }, ...options);
    this.change = made("p", { class: "changed", role: "status" });
    this.list = made("ol", { class: "answer", "aria-label": "the most probable classes" });
    this.trail = made("div", { class: "chart" });
    this.about = made("p", { class: "about" });
    const content = [this.select, this.change, this.list, this.trail, this.about];
    this.box = made("section", { class: "side" }, ...content);
    element("sides").append(this.box);
  }

  get chosen() { return this.select.value; }

  /** Reset for another shape or model. `logits` are of the unchanged shape; null if the next `show` gets them. */
  begin(logits) {
    this.line = [];
    this.label = logits && logits.indexOf(Math.max(...logits));
  }

  /** Show a prediction; `share` is the share of points left. */
  show(model, logits, share) {
    const shares = probabilities(logits), order = descending(shares).slice(0, MOST_CLASSES);
    const nameOf = (i) => model.classes[i] ?? `class ${i}`;
    this.best = order[0];
    this.label ??= this.best;
    showAnswer(order.map((i) => [nameOf(i), shares[i]]), this.list);
    if (this.line.at(-1)?.[0] === share) this.line.pop();
    this.line = [...this.line, [share, shares[this.label]]].slice(-MOST_STEPS);
    say(this.change, this.best === this.label ? "" : `no longer ${nameOf(this.label)}`);
    const label = `probability of ${nameOf(this.label)} against the share of points left`;
    this.trail.replaceChildren(chart(this.line, label));
    say(this.about, label);
  }
}
