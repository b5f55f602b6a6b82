/* Reads OFF, the format of ModelNet; accepts and rejects the same files as `pointset.data.readers.off`. */
import { Lines, meshOf } from "./lines.mjs";
import { addPolygon } from "./polygons.mjs";

const SIZES = { ST: [2], C: [3, 4], N: [3], 4: [1] };
const COLOURS = [0, 1, 3, 4];

export function parseOff(text, name) {
  const lines = new Lines(text, name);
  const { prefixes, rest } = header(lines);
  const [vertexCount, faceCount] = counts(lines, rest);
  const vertices = [], triangles = [];
  let sizes = prefixes.reduce((all, prefix) => all.flatMap((size) => SIZES[prefix].map((more) => size + more)), [3]);
  for (let i = 0; i < vertexCount; i++) {
    const words = lines.take(`vertex ${i} of ${vertexCount}`);
    if (!sizes.includes(words.length))
      throw lines.error(`${sizes.join(" or ")} numbers for vertex ${i} of ${vertexCount}`);
    sizes = [words.length];  // as in the first line: a missing coordinate could look like a shorter colour
    vertices.push(...position(lines, words, prefixes.includes("4")));
  }
  for (let i = 0; i < faceCount; i++)
    addPolygon(triangles, face(lines, `face ${i} of ${faceCount}`, vertexCount), vertices);
  if (lines.next()) throw lines.error(`the end of the file after ${vertexCount} vertices and ${faceCount} faces`);
  return meshOf(vertices, triangles, name);
}

function header(lines) {
  const [first, ...words] = lines.take("the word OFF");
  const match = /^((?:ST|C|N|4)*)OFF(.*)$/.exec(first);
  if (!match) throw lines.error("the word OFF, with ST, C, N or 4 before it or nothing");
  const prefixes = match[1].match(/ST|C|N|4/g) ?? [];
  if (new Set(prefixes).size < prefixes.length) throw lines.error("each of ST, C, N and 4 only once before OFF");
  const rest = match[2] ? [match[2], ...words] : words;
  if (rest[0] === "BINARY") throw lines.error("OFF as text, not its binary form");
  return { prefixes, rest };
}

function counts(lines, rest) {
  const expected = "the counts of vertices, faces and edges";
  const words = rest.length ? rest : lines.take(expected);
  if (![2, 3].includes(words.length) || !words.every((word) => /^\d{1,9}$/.test(word))) throw lines.error(expected);
  const found = words.map(Number);
  if (!found[0] || !found[1]) throw lines.error("at least one vertex and one face");
  return found;
}

function position(lines, words, homogeneous) {
  const numbers = lines.numbers(words);
  if (!homogeneous) return numbers.slice(0, 3);
  if (numbers[3] === 0) throw lines.error("a fourth coordinate that is not zero");
  const place = numbers.slice(0, 3).map((number) => number / numbers[3]);
  if (!place.every(Number.isFinite)) throw lines.error("finite coordinates");
  return place;
}

function face(lines, which, vertexCount) {
  const words = lines.take(which), size = lines.whole(words[0]);
  if (size < 3) throw lines.error(`at least 3 vertices in ${which}`);
  if (words.length - 1 < size) throw lines.error(`${size} vertex indices in ${which}`);
  const colour = words.slice(size + 1);
  if (!COLOURS.includes(colour.length))
    throw lines.error(`${which} to end after ${size} indices and a colour of 0, 1, 3 or 4 numbers`);
  lines.numbers(colour);
  const corners = words.slice(1, size + 1).map((word) => lines.whole(word));
  if (corners.some((corner) => corner < 0 || corner >= vertexCount))
    throw lines.error(`vertex indices from 0 to ${vertexCount - 1} in ${which}`);
  return corners;
}
