/* Elements of the document. Text is always text: nothing here takes markup. */
export const element = (id) => document.getElementById(id);

/** An element with attributes; those with a value of false are left out. */
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

/** Write a text where it is another one: an element that is written to is laid out again. */
export function say(one, text) { if (one.textContent !== text) one.textContent = text; }

/** Arrow keys move among elements of which one can be reached by Tab; `steps` maps keys to steps. */
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
