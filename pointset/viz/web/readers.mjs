/* Reads shapes from files: meshes {vertices, triangles}, and clouds, whose triangles are null. */
import { ReadError, textOf } from "./lines.mjs";
import { parseObj } from "./obj.mjs";
import { parseOff } from "./off.mjs";
import { parsePly } from "./ply.mjs";
import { parseStl } from "./stl.mjs";
import { parseXyz } from "./xyz.mjs";

const READERS = {
  off: (bytes, name) => parseOff(textOf(bytes), name),
  obj: (bytes, name) => parseObj(textOf(bytes), name),
  ply: parsePly,
  stl: parseStl,
  xyz: (bytes, name) => parseXyz(textOf(bytes), name),
  txt: (bytes, name) => parseXyz(textOf(bytes), name),
};
/** The suffixes of supported files. */
export const ENDINGS = Object.keys(READERS).map((ending) => `.${ending}`);

/**
 * Read a shape from the bytes of a file: vertices, a Float64Array [3 V], and triangles, an Int32Array [3 F] or null.
 * Throws a ReadError that names the file, the line or byte, and what was expected.
 */
export function readShape(bytes, name) {
  const ending = /\.(\w+)$/.exec(name)?.[1].toLowerCase(), read = READERS[ending];
  if (!Object.hasOwn(READERS, ending ?? ""))
    throw new ReadError(`${name}: expected a file of one of the kinds ${ENDINGS.join(", ")}`);
  return read(bytes, name);
}

/** Convert vertices from y up to z up. */
export function uprighted(vertices) {
  return vertices.map((_, i) => (i % 3 === 0 ? vertices[i] : i % 3 === 1 ? -vertices[i + 1] : vertices[i - 1]));
}

/** The usual upward axis of files with this suffix, or null if there is none. */
export function usualUp(name) { return /\.obj$/i.test(name) ? "y" : null; }
