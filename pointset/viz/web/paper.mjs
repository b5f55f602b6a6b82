/* The printed form of a canvas: 2D copies, because WebGL would draw too late, in lines that page breaks do not cut. */
import { made } from "./elements.mjs";

/** Slice the canvas into its lines of panels, each with copies of the elements `over` it. */
export function onPaper(canvas, over, panels) {
  const ratio = canvas.width / canvas.clientWidth;
  const topOf = (one) => parseFloat(one.style.top);
  const tops = [...new Set(panels.map((panel) => panel.top))].sort((a, b) => a - b);
  const starts = tops.map((top, line) => line ? Math.min(top, ...over.map(topOf).filter((one) => one > tops[line - 1])) : 0);
  const lines = starts.map((start, line) => {
    const end = starts[line + 1] ?? canvas.clientHeight;
    const copies = over.filter((one) => topOf(one) >= start && topOf(one) < end).map((one) => {
      const copy = one.cloneNode(true);
      copy.style.top = `${topOf(one) - start}px`;
      return copy;
    });
    return made("div", { class: "line" }, slice(canvas, start, end - start, ratio), ...copies);
  });
  return made("div", { class: "paper" }, ...lines);
}

function slice(canvas, top, height, ratio) {
  const copy = document.createElement("canvas");
  Object.assign(copy, { width: canvas.width, height: Math.round(ratio * height) });
  Object.assign(copy.style, { width: `${canvas.clientWidth}px`, maxWidth: "100%", height: "auto" });
  copy.getContext("2d", { willReadFrequently: true }).drawImage(canvas, 0, -Math.round(ratio * top));
  return copy;
}
