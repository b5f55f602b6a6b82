/* The answer of one model: its most probable classes, and how they change as points are removed. */
import { showAnswer } from "./answer.mjs";
import { drawChart } from "./charts.mjs";
import { made, say } from "./elements.mjs";
import { probabilities } from "./questions.mjs";

const SHOWN = 5;

export class Side {
  /** Create the side number `place` with a choice among `names`; `chosen(side)` is called when the choice changes. */
  constructor(box, names, place, chosen) {
    this.list = made("ol", { class: "answer", "aria-label": "the likeliest classes" });
    this.trail = made("div", { class: "chart" });
    this.curves = made("div", { class: "chart" });
    const options = names.map((name) => made("option", {}, name));
    this.select = made("select", { "aria-label": `model ${place + 1}`, onchange: () => chosen(this) }, ...options);
    this.said = made("p", { class: "said", role: "status" });
    this.about = made("p", { class: "about" });
    this.box = made("section", { class: "side" }, this.select, this.said, this.list, this.trail, this.about, this.curves);
    box.append(this.box);
  }

  get chosen() { return this.select.value; }

  /**
   * Reset for another shape or model. `logits` are those of the unchanged shape; null if the first call of `show` will
   * have them.
   */
  begin(logits) {
    this.line = [];
    this.label = logits && logits.indexOf(Math.max(...logits));
    this.curves.replaceChildren();
  }

  /** Show an answer; `share` is the share of points left. */
  show(model, logits, share) {
    const shares = probabilities(logits, model.temperature);
    const order = shares.map((_, i) => i).sort((a, b) => shares[b] - shares[a]).slice(0, SHOWN);
    this.best = order[0];
    this.label ??= this.best;
    showAnswer(order.map((i) => [model.classes[i] ?? `class ${i}`, shares[i]]), this.list);
    if (this.line.at(-1)?.[0] === share) this.line.pop();
    this.line.push([share, shares[this.label]]);
    this.line = this.line.slice(-400);
    const name = model.classes[this.label] ?? `class ${this.label}`;
    say(this.said, this.best === this.label ? "" : `no longer ${name}`);
    const label = `probability of ${name} against the share of points left`;
    drawChart(this.trail, [{ points: this.line, style: "trail" }], label);
    say(this.about, label);
  }

  /** Draw the curves for the orders in which points were removed. */
  compare(lines, name) {
    drawChart(this.curves, lines, `probability of ${name} as points are removed in three orders`);
    const key = lines.map(({ name: order, style }) => made("span", { class: style }, order));
    this.curves.append(made("p", { class: "key" }, ...key));
  }
}
