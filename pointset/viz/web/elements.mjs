/* Elements of the document. Strings are inserted as text, never as markup. */
export const element = (id) => document.getElementById(id);

const SVG = "http://www.w3.org/2000/svg", DRAWN = ["svg", "g", "line", "text", "polyline", "circle"];

/** Create an element with attributes and event handlers, such as {class: "map", onclick: () => ...}. */
export function made(tag, attributes = {}, ...content) {
  const node = DRAWN.includes(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(node.style, value);
    else if (name.startsWith("on")) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...content);
  return node;
}

/** Set the text of an element if it differs: every assignment causes a new layout. */
export function say(node, text) { if (node.textContent !== text) node.textContent = text; }

/** Roving focus: Tab reaches one of the buttons in a box, arrow keys move among them; `steps()` maps keys to steps. */
export function roving(box, steps, onMove = () => {}) {
  const buttons = () => [...box.querySelectorAll("button")];
  const reach = (index) => buttons().forEach((button, i) => { button.tabIndex = i === index ? 0 : -1; });
  box.addEventListener("keydown", (event) => {
    const all = buttons(), at = all.indexOf(document.activeElement);
    if (at < 0 || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    const to = { Home: 0, End: all.length - 1 }[event.key] ?? at + (steps()[event.key] ?? NaN);
    if (!(to >= 0 && to < all.length)) return;
    event.preventDefault();
    reach(to);
    all[to].focus();
    onMove(to);
  });
  return reach;
}
