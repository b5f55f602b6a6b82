/* The page of attention maps that were computed in Python. */
import { Camera, reachOf } from "./camera.mjs";
import { palettesOf } from "./controls.mjs";
import { element, listenToKeys, showAnswer } from "./elements.mjs";
import { fromBase64, Layer } from "./maps.mjs";
import { MapsView } from "./maps_view.mjs";

const data = JSON.parse(element("data").textContent);
element("title").textContent = data.title;
element("note").textContent = data.note;
showAnswer(data.classes);
listenToKeys();
const camera = new Camera(data.camera), positions = new Int16Array(fromBase64(data.positions));
window.pointset = new MapsView({
  ...data,
  camera,
  positions,
  reach: reachOf(positions, camera),
  palettes: palettesOf(data),
  layers: data.layers.map((content) => new Layer(content, data.points, data.models)),
});
