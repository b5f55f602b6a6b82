/* Reads .xyz and .txt: one point per line, without a header; the first three numbers are its coordinates. */
import { Lines, ReadError } from "./lines.mjs";

const SEPARATORS = [/^[^,;]*$/, /^[^;]*$/, /^[^,]*$/];

export function parseXyz(text, name) {
  const lines = new Lines(text, name, { comment: /(?:#|\/\/).*/ }), points = [];
  let width = 0, words;
  while ((words = lines.next())) {
    const said = words.join(" "), kind = SEPARATORS.findIndex((allowed) => allowed.test(said));
    const parts = kind === 1 ? said.split(",") : kind === 2 ? said.split(";") : words;
    if (parts.every((part) => Number.isNaN(Number(part)))) throw lines.error("numbers, or # before a line that is not a point");
    const numbers = lines.numbers(parts.map((part) => part.trim()));
    width ||= numbers.length;
    if (numbers.length < 3 || numbers.length !== width)
      throw lines.error(width < 3 ? "3 numbers or more on every line" : `${width} numbers, as on the lines above`);
    points.push(numbers[0], numbers[1], numbers[2]);
  }
  if (!points.length) throw new ReadError(`${name}, line 1: expected points, found none`);
  return { vertices: Float64Array.from(points), triangles: null };
}
