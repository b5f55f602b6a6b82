/* Lines in a small chart, as SVG: probability of a class against the share of points left. */
const SPACE = "http://www.w3.org/2000/svg";
const WIDTH = 320, HEIGHT = 120, LEFT = 30, BOTTOM = 18, TOP = 6, RIGHT = 8;

function drawn(tag, attributes, ...content) {
  const one = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) one.setAttribute(name, value);
  one.append(...content);
  return one;
}

const across = (left) => LEFT + (1 - left) * (WIDTH - LEFT - RIGHT);
const down = (probability) => TOP + (1 - probability) * (HEIGHT - TOP - BOTTOM);

/** `lines`: [{name, points: [[share left, probability], ...], style}], into an element; `label` says what it shows. */
export function drawChart(box, lines, label) {
  const axes = [0, 0.5, 1].flatMap((share) => [
    drawn("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: down(share), y2: down(share), class: "grid" }),
    drawn("text", { x: LEFT - 4, y: down(share) + 3, "text-anchor": "end" }, `${100 * share}`),
    drawn("text", { x: across(share), y: HEIGHT - 4, "text-anchor": ["end", "middle", "start"][2 * share] }, `${100 * share} %`),
  ]);
  const curves = lines.filter((line) => line.points.length).flatMap(({ points, style }) => [
    drawn("polyline", { class: style, points: points.map(([left, p]) => `${across(left)},${down(p)}`).join(" ") }),
    drawn("circle", { class: style, r: 2.5, cx: across(points.at(-1)[0]), cy: down(points.at(-1)[1]) }),
  ]);
  box.replaceChildren(drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label }, ...axes, ...curves));
}
