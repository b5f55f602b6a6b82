/* Where the panels are, and what the hand does. Follows page.js. */
function label(left, top, width, texts, className) {
  const made = document.createElement("div");
  made.className = className;
  Object.assign(made.style, { left: `${left}px`, top: `${top}px`, width: `${width}px` });
  made.append(...texts.map((text, i) => {
    const part = document.createElement("span");
    part.textContent = text;
    part.className = i ? "spread" : "";
    return part;
  }));
  element("labels").append(made);
}

function arrange() {
  const [heads, rows] = [layer.heads.length, layer.rows.length];
  const width = element("stage").clientWidth;
  const wide = rows === 1 ? heads : rows;
  const columns = Math.max(1, Math.min(8, wide, Math.floor(width / 84)));
  size = Math.floor(Math.min((width - GAP * (columns - 1)) / columns, 330));
  tall = Math.round(size * data.aspect);
  panels = [];
  element("labels").replaceChildren();
  let top = 0;
  const place = (index, column, name) => {
    const left = column * (size + GAP);
    label(left, top, size, [name, layer.spread[index].toFixed(2)], "panel");
    panels.push({ left, top: top + LABEL, index, mark: layer.marks[index % rows] });
  };
  for (let h = 0; h < heads; h++) {
    if (rows === 1) {
      if (h && h % columns === 0) top += tall + LABEL + GAP;
      place(h, h % columns, `head ${layer.heads[h]}`);
      continue;
    }
    const texts = [`head ${layer.heads[h]}`];
    if (layer.differences.length) texts.push(`maps of this head differ by ${layer.differences[layer.heads[h]].toFixed(2)}`);
    label(0, top, width, texts, "head");
    top += HEAD;
    for (let r = 0; r < rows; r++) {
      place(h * rows + r, r % columns, `${layer.rows[r]}`);
      if (r % columns === columns - 1 || r === rows - 1) top += tall + LABEL + GAP;
    }
  }
  const height = rows === 1 ? top + tall + LABEL : top;
  const ratio = Math.min(window.devicePixelRatio || 1, 4096 / Math.max(width, height));
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  [canvas.width, canvas.height] = [Math.round(width * ratio), Math.round(height * ratio)];
  redraw();
}

function turn(right, down) {
  camera.azimuth -= right;
  camera.elevation = Math.max(-90, Math.min(90, camera.elevation + down));
  redraw();
}

function zoom(factor) {
  camera.zoom = Math.max(0.5, Math.min(12, camera.zoom * factor));
  redraw();
}

/* The point under the pointer in the panel under the pointer, as the eye would pick it: attended ones lie before others. */
function pick(event) {
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  const panel = panels.find((p) => x >= p.left && x < p.left + size && y >= p.top && y < p.top + tall);
  if (!panel) return null;
  const [right, up, near] = axes();
  const half = size / 2;
  let best = null, least = Math.max(7, size / 30) ** 2;
  for (let i = 0; i < n; i++) {
    const p = [0, 1, 2].map((k) => positions[3 * i + k] / 32767);
    const along = (axis) => axis[0] * p[0] + axis[1] * p[1] + axis[2] * p[2];
    const scale = (camera.distance / (camera.distance - along(near))) * camera.zoom * data.fit * half;
    const [dx, dy] = [panel.left + half + along(right) * scale - x, panel.top + tall / 2 - along(up) * scale - y];
    const score = dx * dx + dy * dy - 4 * along(near) - (relative(panel, i) > 1 ? 8 : 0);
    if (score < least) [best, least] = [i, score];
  }
  return best === null ? null : { panel, point: best };
}

function code(panel, point) { return layer.codes[panel.index * n + point]; }

function relative(panel, point) {
  return 2 ** (layer.low + ((layer.high - layer.low) * code(panel, point)) / mostCode);
}

function describe({ panel, point }) {
  if (code(panel, point) === 0) return `point ${point}: weight exactly 0`;
  let rank = 1;
  for (let i = 0; i < n; i++) if (code(panel, i) > code(panel, point)) rank++;
  const value = relative(panel, point);
  const less = code(panel, point) === 1 ? "at most " : "";
  const [times, weight] = [value, value / layer.keys].map((number) => number.toPrecision(3));
  return `point ${point}: ${less}${times} times uniform\nweight ${less}${weight}, rank ${rank} of ${n}`;
}

function leave() {
  element("tip").style.display = "none";
  selected = -1;
  redraw();
}

function hover(event) {
  const found = pick(event);
  const tip = element("tip");
  tip.style.display = found ? "block" : "none";
  if (found) {
    tip.textContent = describe(found);
    const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 4);
    Object.assign(tip.style, { left: `${left}px`, top: `${Math.max(event.clientY - 48, 2)}px` });
  }
  const point = found ? found.point : -1;
  if (point !== selected) { selected = point; redraw(); }
}

const held = new Map();
const apart = () => { const [a, b] = [...held.values()]; return Math.hypot(a.x - b.x, a.y - b.y) || 1; };

function move(event) {
  const last = held.get(event.pointerId);
  if (!last) { if (event.pointerType !== "touch") hover(event); return; }
  const before = held.size === 2 ? apart() : 0;
  leave();
  const now = { x: event.clientX, y: event.clientY };
  held.set(event.pointerId, now);
  if (held.size === 2) zoom(apart() / before);
  else turn((now.x - last.x) * 0.6, (now.y - last.y) * 0.6);
}

function listen() {
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, { x: event.clientX, y: event.clientY });
    hover(event);
  });
  canvas.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, (e) => { held.delete(e.pointerId); redraw(); });
  canvas.addEventListener("pointerleave", leave);
  canvas.addEventListener("wheel", (event) => { event.preventDefault(); zoom(2 ** (-event.deltaY / 500)); }, { passive: false });
  canvas.addEventListener("dblclick", () => { Object.assign(camera, home); redraw(); });
  const keys = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] };
  canvas.addEventListener("keydown", (event) => {
    if (event.key in keys) { event.preventDefault(); turn(...keys[event.key]); }
    if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? 1.15 : 1 / 1.15);
  });
  canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
  canvas.addEventListener("webglcontextrestored", () => { setUp(); show(data.layers.indexOf(layer)); });
  window.addEventListener("resize", arrange);
}

function start() {
  element("title").textContent = data.title;
  element("note").textContent = data.note;
  const stops = Array.from({ length: 33 }, (_, i) => `rgb(${palette.slice(3 * Math.min(8 * i, 255)).slice(0, 3)})`);
  element("gradient").style.background = `linear-gradient(to right, ${stops})`;
  gl = canvas.getContext("webgl2", { antialias: true, alpha: false });
  if (!gl) {
    element("stage").textContent = "This browser offers no WebGL 2: look at the still picture instead.";
    return;
  }
  element("layers").append(...data.layers.map((one, i) => {
    const button = document.createElement("button");
    button.textContent = one.name;
    button.setAttribute("role", "tab");
    button.onclick = () => show(i);
    return button;
  }));
  setUp();
  listen();
  show(data.first);
}
start();
