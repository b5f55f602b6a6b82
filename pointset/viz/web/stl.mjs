/* Reads STL: binary if the file size agrees with the number of triangles in the header, else text. */
import { Lines, meshOf, ReadError, textOf } from "./lines.mjs";

const HEADER = 84, RECORD = 50;
const NUMBER = null, ANY = undefined;
const VERTEX = ["vertex", NUMBER, NUMBER, NUMBER];
const FACET = [
  "facet", "normal", ANY, ANY, ANY, "outer", "loop",
  ...VERTEX, ...VERTEX, ...VERTEX, "endloop", "endfacet",
];

export function parseStl(bytes, name) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const count = bytes.length < HEADER ? 0 : view.getUint32(HEADER - 4, true), size = HEADER + RECORD * count;
  if (bytes.length >= HEADER && bytes.length === size) return binary(view, count, name);
  const text = textOf(bytes);
  if (/^\s*solid(?:\s|$)/i.test(text)) {
    try { return solids(new Lines(text, name, { comment: null }), name); }
    catch (error) { if (!text.includes("\0")) throw error; }
  }
  if (bytes.length < HEADER)
    throw new ReadError(`${name}, line 1: expected STL, which begins with solid or with ${HEADER} bytes of header`);
  throw new ReadError(`${name}, byte ${HEADER - 4}: a binary STL of ${count} triangles has ${size} bytes, found ${bytes.length}`);
}

function binary(view, count, name) {
  const vertices = new Float64Array(9 * count);
  for (let i = 0; i < count; i++)
    for (let j = 0; j < 9; j++) {
      const number = view.getFloat32(HEADER + RECORD * i + 12 + 4 * j, true);
      if (!Number.isFinite(number))
        throw new ReadError(`${name}, byte ${HEADER + RECORD * i}: expected a triangle with finite coordinates`);
      vertices[9 * i + j] = number;
    }
  return meshOf(vertices, vertices.subarray(0, 3 * count).map((_, i) => i), name);
}

function solids(lines, name) {
  const vertices = [];
  let words = [];
  const next = (expected) => {
    while (!words.length) words = [...lines.take(expected)];
    return words.shift();
  };
  const require = (word, expected) => { if (word.toLowerCase() !== expected) throw lines.error(expected); };
  while (words.length || (words = [...(lines.next() ?? [])]).length) {
    require(words.shift(), "solid");
    words = [];  // the rest of the line is a name
    for (let word; (word = next("facet or endsolid")).toLowerCase() !== "endsolid";) {
      require(word, "facet");
      const numbers = FACET.slice(1).flatMap((expected) => {
        const found = next(expected ?? "a number");
        if (expected === NUMBER || expected === ANY) return lines.numbers([found], expected === ANY ? 0 : 1);
        require(found, expected);
        return [];
      });
      vertices.push(...numbers.slice(3));
    }
    words = [];
  }
  return meshOf(vertices, Array.from({ length: vertices.length / 3 }, (_, i) => i), name);
}
