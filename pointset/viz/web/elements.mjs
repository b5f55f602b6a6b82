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

/** Let the buttons of the page open its help, and keys press the buttons that name them in aria-keyshortcuts. */
export function listenToKeys() {
  for (const id of ["help-open", "enlarged-help"]) element(id).onclick = () => element("help").showModal();
  document.addEventListener("keydown", ({ key, target, ctrlKey, altKey, metaKey }) => {
    const typed = target.closest("select, input") && !["?", "Escape"].includes(key);
    if (typed || element("help").open || ctrlKey || altKey || metaKey) return;
    document.querySelector(`[aria-keyshortcuts="${CSS.escape(key)}"]`)?.click();
  });
}

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

function percent(share) {
  if (share >= 0.995 && share < 1) return "> 99 %";
  return share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}

/** Fill a list element with `classes`, [name, probability] each, most probable first. */
export function showAnswer(classes, list = element("answer")) {
  list.replaceChildren(...classes.map(([name, share]) => made(
    "li", {},
    made("span", { class: "class", title: name }, name),
    made("span", { class: "track" }, made("span", { class: "share", style: { width: `${100 * share}%` } })),
    made("span", { class: "percent" }, percent(share)),
  )));
}
