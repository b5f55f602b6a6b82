/* The colour bar. */
import { element, made } from "./elements.mjs";
import { bytes } from "./maps.mjs";

/** Palettes by the name of a scheme, Uint8Array [3 * 256] each. */
export function palettesOf({ palettes }) {
  return Object.fromEntries(Object.entries(palettes).map(([name, text]) => [name, new Uint8Array(bytes(text))]));
}

export function showPalette(palette) {
  const stops = Array.from({ length: 33 }, (_, i) => `rgb(${[...palette.slice(3 * Math.min(8 * i, 255))].slice(0, 3)})`);
  element("gradient").style.background = `linear-gradient(to right, ${stops})`;
}

/** `ticks`: [place from 0 to 1, text]; "1" is uniform attention. */
export function showTicks(ticks) {
  element("ticks").replaceChildren(...ticks.map(([place, text]) => made(
    "span", { class: text === "1" ? "uniform" : "", style: { left: `${100 * place}%` } }, text === "1" ? "1 = uniform" : text,
  )));
}
