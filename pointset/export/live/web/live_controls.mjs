/* The sliders, buttons and keys of the live page. */
import { element, made, say } from "../../../viz/web/elements.mjs";

const LEAST = 16, MOST = 2048;
/** For each slider: label, smallest and largest position, and a function from a position to its value and text. */
const SLIDERS = {
  drop: ["dropped at random", 0, 98, (at) => [at / 100, `${at} %`]],
  background: ["background points", 0, 100, (at) => [at / 100, `${at} %`]],
  jitter: ["jitter", 0, 200, (at) => [at / 1000, `${at / 10} % of the radius`]],
  turn: ["turn", -180, 180, (at) => [at, `${at}°`]],
  tilt: ["tilt", -180, 180, (at) => [at, `${at}°`]],
};

/** Connect the controls to the page `live`; returns a function for the chosen number of points. */
export function listenToControls(live) {
  // The slider starts at the number of points with which the first model was trained, within the range of the slider.
  const start = (100 * Math.log(live.data.models[0].points / LEAST)) / Math.log(MOST / LEAST);
  const points = slider("points", "points", 0, 100, start, (at) => {
    const chosen = Math.round(LEAST * (MOST / LEAST) ** (at / 100));
    return [chosen, `${chosen}`];
  }, () => live.begin());
  for (const [id, [label, least, most, meaning]] of Object.entries(SLIDERS))
    slider(id, label, least, most, 0, meaning, (value) => live.pose({ [id]: value }));
  element("shapes").append(...live.shapes.map(({ name }, number) => made("option", { value: number }, name)));
  element("shapes").onchange = element("up").onchange = () => live.open(Number(element("shapes").value));
  element("file").onclick = (event) => { event.target.value = ""; };  // so that the same file can be chosen again
  element("file").onchange = (event) => { if (event.target.files.length) live.read(event.target.files[0]); };
  for (const name of ["dragover", "dragleave", "drop"]) document.addEventListener(name, (event) => {
    event.preventDefault();
    document.body.classList.toggle("dropping", name === "dragover");
    if (name === "drop" && event.dataTransfer.files.length) live.read(event.dataTransfer.files[0]);
  });
  const modes = ["turn", "away", "back"];
  for (const mode of modes) element(`mode-${mode}`).onclick = () => {
    live.shapeView.choose(mode);
    for (const other of modes) element(`mode-${other}`).setAttribute("aria-pressed", other === mode);
  };
  element("brush").oninput = () => { live.shapeView.radius = Number(element("brush").value); };
  element("restore").onclick = () => live.restore();
  element("looked-at").onclick = () => live.removeLookedAt();
  element("mapped").onchange = () => live.showMaps(Number(element("mapped").value));
  element("reset").onclick = () => {
    for (const id of Object.keys(SLIDERS)) { element(id).value = 0; element(id).oninput(); }
    live.restore();
  };
  return points;
}

/** Add a slider that calls `changed(value)`; return a function that returns its value. */
function slider(id, label, min, max, start, meaning, changed) {
  const output = made("output"), step = id === "points" ? "any" : 1;
  const input = made("input", { type: "range", id, min, max, step, value: start });
  const value = () => {
    const [number, text] = meaning(Number(input.value));
    say(output, text);
    return number;
  };
  input.oninput = () => changed(value());
  element("sliders").append(made("label", {}, `${label} `, output, input));
  value();
  return value;
}
