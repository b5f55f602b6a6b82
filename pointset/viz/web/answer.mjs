/* Shows the most probable classes as bars. */
import { element, made } from "./elements.mjs";

function percent(share) {
  if (share >= 0.995 && share < 1) return "> 99 %";
  return share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** Fill a list element with `classes`, [name, probability] each, most probable first. */
export function showAnswer(classes, list = element("answer")) {
  list.replaceChildren(...classes.map(([name, share]) => made(
    "li", {},
    made("span", { class: "class" }, name),
    made("span", { class: "track" }, made("span", { class: "share", style: { width: `${100 * share}%` } })),
    made("span", { class: "percent" }, percent(share)),
  )));
}
