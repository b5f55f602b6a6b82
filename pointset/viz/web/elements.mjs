/* Elements of the document. Strings are inserted as text, never as markup. */
export const element = (id) => document.getElementById(id);

/** Create an element with attributes; attributes with the value false are omitted. */
export function made(tag, attributes = {}, ...content) {
  const one = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "style") Object.assign(one.style, value);
    else if (name.startsWith("on")) one[name] = value;
    else if (value !== false) one.setAttribute(name, value === true ? "" : value);
  }
  one.append(...content);
  return one;
}

/** Set the text of an element if it differs: every assignment causes a new layout. */
export function say(one, text) { if (one.textContent !== text) one.textContent = text; }

/** Roving focus: Tab reaches one of the buttons in a box, arrow keys move among them; `steps()` maps keys to steps. */
export function roving(box, steps, onMove = () => {}) {
  const rest = (items, one) => items.forEach((item) => { item.tabIndex = item === one ? 0 : -1; });
  box.addEventListener("keydown", (event) => {
    const items = [...box.querySelectorAll("button")];
    const at = items.indexOf(document.activeElement);
    if (at < 0 || event.shiftKey || event.ctrlKey || event.altKey || event.metaKey) return;
    const to = { Home: 0, End: items.length - 1 }[event.key] ?? at + (steps()[event.key] ?? NaN);
    if (!(to >= 0 && to < items.length)) return;
    event.preventDefault();
    rest(items, items[to]);
    items[to].focus();
    onMove(to);
  });
  return (place) => { const items = [...box.querySelectorAll("button")]; rest(items, items[place]); };
}
