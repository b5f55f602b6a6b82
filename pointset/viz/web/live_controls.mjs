/* The sliders, buttons and keys of the live page. */
import { element, made } from "./elements.mjs";

const LEAST = 16, MOST = 2048;
const SLIDERS = {
  drop: (value) => [value / 100, `${value} %`],
  turn: (value) => [value, `${value}°`],
  tilt: (value) => [value, `${value}°`],
  jitter: (value) => [value / 1000, `${value / 10} % of its radius`],
  background: (value) => [value / 100, `${value} %`],
  scale: (value) => [2 ** (value / 50), `× ${(2 ** (value / 50)).toFixed(2)}`],
};

/** Connect the controls to the page `live`; `names` are those of the included shapes. Returns {points()}. */
export function listenToControls(live, names) {
  const points = () => Math.round(LEAST * (MOST / LEAST) ** (Number(element("points").value) / 100));
  const say = (id, text) => { element(`${id}-said`).textContent = text; };
  element("points").oninput = () => { say("points", points()); live.begin(); };
  say("points", points());
  for (const [id, meaning] of Object.entries(SLIDERS)) {
    element(id).oninput = () => {
      const [value, text] = meaning(Number(element(id).value));
      say(id, text);
      live.pose({ [id]: value });
    };
    say(id, meaning(Number(element(id).value))[1]);
  }
  element("shapes").append(...names.map((name, place) => made("option", { value: place }, name)));
  element("shapes").onchange = element("up").onchange = () => live.open(Number(element("shapes").value));
  element("file").onclick = (event) => { event.target.value = ""; };  // so that the same file can be chosen again
  element("file").onchange = (event) => { if (event.target.files.length) live.read(event.target.files[0]); };
  listenToDrops(live);
  for (const mode of ["turn", "away", "back"])
    element(`mode-${mode}`).onclick = () => choose(live, mode);
  element("brush").oninput = () => { if (live.shapeView) live.shapeView.radius = Number(element("brush").value); };
  const actions = {
    r: ["restore", () => live.restore()], l: ["looked-at", () => live.removeLookedAt()],
    o: ["occlude", () => live.occlude()], c: ["curves", () => live.compareOrders()],
  };
  for (const [id, act] of Object.values(actions)) element(id).onclick = act;
  element("mapped").onchange = () => live.showMaps(Number(element("mapped").value));
  element("reset").onclick = () => {
    for (const id of Object.keys(SLIDERS)) { element(id).value = 0; element(id).oninput(); }
    live.restore();
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("select, input, dialog") || event.ctrlKey || event.altKey || event.metaKey;
    if (typing) return;
    if (event.key in actions) actions[event.key][1]();
    else if ("tde".includes(event.key)) choose(live, { t: "turn", d: "away", e: "back" }[event.key]);
  });
  return { points };
}

function choose(live, mode) {
  live.shapeView?.choose(mode);
  for (const one of ["turn", "away", "back"]) element(`mode-${one}`).setAttribute("aria-pressed", one === mode);
}

function listenToDrops(live) {
  const over = (on) => (event) => { event.preventDefault(); document.body.classList.toggle("dropping", on); };
  document.addEventListener("dragover", over(true));
  document.addEventListener("dragleave", over(false));
  document.addEventListener("drop", (event) => {
    over(false)(event);
    if (event.dataTransfer.files.length) live.read(event.dataTransfer.files[0]);
  });
}
