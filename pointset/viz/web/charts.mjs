/* A small line chart as SVG: probability of a class against the share of points left. */
const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 320, HEIGHT = 120, LEFT = 30, BOTTOM = 18, TOP = 6, RIGHT = 8;

function set(one, attributes) {
  for (const [name, value] of Object.entries(attributes))
    if (one.getAttribute(name) !== `${value}`) one.setAttribute(name, value);
}

function drawn(tag, attributes, ...content) {
  const one = document.createElementNS(SPACE, tag);
  set(one, attributes);
  one.append(...content);
  return one;
}

const across = (left) => LEFT + (1 - left) * (WIDTH - LEFT - RIGHT);
const down = (probability) => TOP + (1 - probability) * (HEIGHT - TOP - BOTTOM);

function axes() {
  return [0, 0.5, 1].flatMap((share) => [
    drawn("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: down(share), y2: down(share), class: "grid" }),
    drawn("text", { x: LEFT - 4, y: down(share) + 3, "text-anchor": "end" }, `${100 * share}`),
    drawn("text", { x: across(share), y: HEIGHT - 4, "text-anchor": ["end", "middle", "start"][2 * share] }, `${100 * share} %`),
  ]);
}

/**
 * Draw `lines`, [{name, points: [[share left, probability], ...], style}], at least one point each, into an element.
 * `label` describes the chart. Existing lines are updated in place, which is fast enough while the user drags.
 */
export function drawChart(box, lines, label) {
  const styles = lines.map((line) => line.style).join();
  if (box.firstChild?.dataset.styles !== styles) {
    const curves = lines.map(({ style }) => drawn(
      "g", { class: style }, drawn("polyline", {}), drawn("circle", { r: 2.5 }),
    ));
    box.replaceChildren(
      drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "data-styles": styles }, ...axes(), ...curves),
    );
  }
  set(box.firstChild, { "aria-label": label });
  const groups = box.querySelectorAll("g");
  for (const [place, { points }] of lines.entries()) {
    const [line, dot] = groups[place].children, [left, last] = points.at(-1);
    set(line, { points: points.map(([share, p]) => `${across(share)},${down(p)}`).join(" ") });
    set(dot, { cx: across(left), cy: down(last) });
  }
}
