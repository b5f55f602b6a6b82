/* Reads shapes from files: meshes {vertices, triangles}, and clouds, whose triangles are null. */
import { fromBase64 } from "./maps.mjs";
import { addPolygon } from "./meshes.mjs";
import { Lines, meshOf, parseObj, parseOff, parseXyz, ReadError, textOf } from "./text_files.mjs";

const READERS = {
  off: (bytes, name) => parseOff(textOf(bytes), name),
  obj: (bytes, name) => parseObj(textOf(bytes), name),
  ply: parsePly,
  stl: parseStl,
  xyz: (bytes, name) => parseXyz(textOf(bytes), name),
  txt: (bytes, name) => parseXyz(textOf(bytes), name),
};

/**
 * Read a shape from the bytes of a file: vertices, a Float64Array [3 V], and triangles, an Int32Array [3 F] or null.
 * Throws a ReadError that names the file, the line or byte, and what was expected.
 */
export function readShape(bytes, name) {
  const suffix = /\.(\w+)$/.exec(name)?.[1].toLowerCase() ?? "";
  if (!Object.hasOwn(READERS, suffix)) {
    const suffixes = Object.keys(READERS).map((known) => `.${known}`).join(", ");
    throw new ReadError(`${name}: expected a file of one of the kinds ${suffixes}`);
  }
  return READERS[suffix](bytes, name);
}

const TYPES = {
  char: "Int8", uchar: "Uint8", short: "Int16", ushort: "Uint16", int: "Int32", uint: "Uint32", float: "Float32",
  double: "Float64", int8: "Int8", uint8: "Uint8", int16: "Int16", uint16: "Uint16", int32: "Int32", uint32: "Uint32",
  float32: "Float32", float64: "Float64",
};
const FORMATS = ["ascii", "binary_little_endian", "binary_big_endian"];

/** Read PLY (G. Turk, "The PLY Polygon File Format", 1994): a mesh, or a cloud if it has no faces. */
function parsePly(bytes, name) {
  const { format, elements, start, line } = plyHeader(bytes, name);
  const vertices = [], triangles = [], polygons = [];
  const source = format === "ascii" ? textValues(bytes, name, start, line) : binaryValues(bytes, name, start, format);
  for (const { name: kind, count, properties } of elements)
    for (let entry = 0; entry < count; entry++) {
      source.begin(`${kind} ${entry} of ${count}`);
      const values = {};
      for (const { name: property, type, length } of properties) {
        const list = () => Array.from({ length: source.length(length) }, () => source.number(type));
        values[property] = length ? list() : source.number(type);
      }
      if (kind === "vertex") vertices.push(...coordinates(values, source));
      else if (kind === "face") polygons.push(corners(values, source, vertices.length / 3));
      source.end();
    }
  source.finish();
  if (!vertices.length) throw new ReadError(`${name}: expected a mesh or a cloud, found no vertices`);
  if (!polygons.length) return { vertices: Float64Array.from(vertices), triangles: null };
  for (const polygon of polygons) addPolygon(triangles, polygon, vertices);
  return meshOf(vertices, triangles, name);
}

function coordinates({ x, y, z }, source) {
  if (![x, y, z].every(Number.isFinite)) throw source.error("finite coordinates x, y and z");
  return [x, y, z];
}

function corners(values, source, count) {
  const indices = values.vertex_indices ?? values.vertex_index;
  if (!indices?.every((index) => Number.isInteger(index) && index >= 0 && index < count))
    throw source.error(`a list vertex_indices of whole numbers from 0 to ${count - 1}`);
  return indices;
}

function plyHeader(bytes, name) {
  const head = textOf(bytes.subarray(0, 1 << 16)), end = /^end_header[ \t]*(?:\r\n|\r|\n|$)/m.exec(head);
  if (!/^ply\s/.test(head) || !end)
    throw new ReadError(`${name}, line 1: expected the header of a PLY file, from ply to end_header`);
  const lines = new Lines(head.slice(0, end.index), name, { comment: null }), elements = [];
  let format = null;
  for (let words = (lines.next(), lines.next()); words; words = lines.next()) {
    const [keyword, ...rest] = words, properties = elements.at(-1)?.properties;
    const isNew = (known) => !known.some((item) => item.name === rest.at(-1));
    if (keyword === "comment" || keyword === "obj_info") continue;
    // Each may occur once: if there were two, it would be ambiguous which is valid.
    if (keyword === "format" && !format && FORMATS.includes(rest[0])) [format] = rest;
    else if (keyword === "element" && rest.length === 2 && elements.every((element) => element.name !== rest[0]))
      elements.push({ name: rest[0], count: lines.whole(rest[1]), properties: [] });
    else if (keyword === "property" && properties && isNew(properties)) properties.push(property(lines, rest));
    else throw lines.error("a format, an element or a property");
  }
  if (!format) throw new ReadError(`${name}: expected a format, one of ${FORMATS.join(", ")}`);
  const strips = elements.find((element) => element.name === "tristrips" && element.count);
  if (strips) throw new ReadError(`${name}: expected a mesh of faces, found strips of triangles: save it with faces`);
  const start = end.index + end[0].length, line = head.slice(0, start).split(/\r\n?|\n/).length;
  return { format, elements: elements.filter((element) => element.properties.length), start, line };
}

function property(lines, words) {
  const [length, type, name, ...more] = words[0] === "list" ? words.slice(1) : [null, ...words];
  const counts = length === null || (TYPES[length] && !TYPES[length].startsWith("Float"));
  if (!TYPES[type] || !name || !counts || more.length) throw lines.error("a property with a type of PLY and a name");
  return { name, type: TYPES[type], length: length && TYPES[length] };
}

/** The values of a PLY file as text, one entry per line. */
function textValues(bytes, name, start, first) {
  const lines = new Lines(textOf(bytes.subarray(start)), name, { comment: null, first });
  let words = [];
  const number = () => {
    if (!words.length) throw lines.error("more numbers on this line");
    return Number(words.shift());  // properties other than coordinates may be nan
  };
  const length = () => {
    const count = number();
    if (!(Number.isInteger(count) && count >= 0)) throw lines.error("the length of a list");
    return count;
  };
  return {
    begin: (which) => { words = [...lines.take(which)]; },
    number,
    length,
    end: () => { if (words.length) throw lines.error("fewer numbers on this line"); },
    finish: () => { if (lines.next()) throw lines.error("the end of the file"); },
    error: (expected) => lines.error(expected),
  };
}

function binaryValues(bytes, name, start, format) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), little = format.includes("little");
  let at = start;
  const error = (expected) => new ReadError(`${name}, byte ${at}: expected ${expected}`);
  const number = (type) => {
    const size = Number(/\d+/.exec(type)[0]) / 8;
    if (at + size > bytes.length) throw error("more of what its header announces, found the end of the file");
    at += size;
    return view[`get${type}`](at - size, little);
  };
  const length = (type) => {
    const count = number(type);
    if (!(count >= 0 && count <= bytes.length)) throw error("the length of a list");
    return count;
  };
  const finish = () => {
    if (at !== bytes.length) throw error(`the end of the file, found ${bytes.length - at} bytes more`);
  };
  return { begin() {}, number, length, end() {}, finish, error };
}

const HEADER = 84, RECORD = 50;
const KEYWORDS = "solid facet outer vertex endloop endfacet endsolid".split(" ");

/** Read STL: binary if the file has the size for the number of triangles in its header, else text if it begins so. */
function parseStl(bytes, name) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), text = textOf(bytes);
  const count = bytes.length < HEADER ? 0 : view.getUint32(HEADER - 4, true), size = HEADER + RECORD * count;
  if (bytes.length !== size && /^\s*solid\s[^]*facet/i.test(text))
    return textStl(new Lines(text, name, { comment: null }), name);
  if (bytes.length < HEADER)
    throw new ReadError(`${name}, line 1: expected STL, which begins with solid or with ${HEADER} bytes of header`);
  const error = (byte, words) => new ReadError(`${name}, byte ${byte}: ${words}`);
  const record = (i) => HEADER + RECORD * Math.floor(i / 9);
  if (bytes.length < size)
    throw error(HEADER - 4, `a binary STL of ${count} triangles has ${size} bytes, found ${bytes.length}`);
  const number = (_, i) => view.getFloat32(record(i) + 12 + 4 * (i % 9), true);
  const vertices = Float64Array.from({ length: 9 * count }, number);
  const odd = vertices.findIndex((x) => !Number.isFinite(x));
  if (odd >= 0) throw error(record(odd), "expected a triangle with finite coordinates");
  return meshOf(vertices, vertices.subarray(0, 3 * count).map((_, i) => i), name);
}

function textStl(lines, name) {
  const vertices = [];
  for (let words; (words = lines.next());) {
    const keyword = words[0].toLowerCase();
    if (!KEYWORDS.includes(keyword)) throw lines.error(`one of ${KEYWORDS.join(", ")}`);
    if (keyword === "vertex") {
      if (words.length !== 4) throw lines.error("3 coordinates of a vertex");
      vertices.push(...lines.numbers(words.slice(1)));
    } else if (!keyword.startsWith("end") && vertices.length % 9) throw lines.error("3 vertices of each facet");
  }
  if (vertices.length % 9) throw lines.error("3 vertices of each facet");
  return meshOf(vertices, Array.from({ length: vertices.length / 3 }, (_, i) => i), name);
}

/** The shapes of the live page: those included in it, [{name, points, size}], and files of the user. */
export class Shapes {
  constructor(included) { Object.assign(this, { included, files: [] }); }

  /**
   * The shape with this number, {name, vertices, triangles, note}, with z up as in training. `up` is the upward axis of
   * a file, "y" or "z", or "auto" for the usual axis of its format; `note` names the axis that was used.
   */
  at(number, up) {
    if (number >= this.included.length) return upright(this.files[number - this.included.length], up);
    const { name, points, size } = this.included[number], codes = new Int16Array(fromBase64(points));
    return { name, vertices: Float64Array.from(codes, (code) => (code / 32767) * size), triangles: null, note: "" };
  }

  /** Read a file, and return the number of its shape. Throws a ReadError. */
  async add(file) {
    this.files.push({ ...readShape(new Uint8Array(await file.arrayBuffer()), file.name), name: file.name });
    return this.included.length + this.files.length - 1;
  }
}

function upright(shape, choice) {
  const up = choice === "auto" ? (/\.obj$/i.test(shape.name) ? "y" : "z") : choice, { vertices: v } = shape;
  const vertices = up === "z" ? v : v.map((x, i) => (i % 3 === 0 ? x : i % 3 === 1 ? -v[i + 1] : v[i - 1]));
  return { ...shape, vertices, note: `${up} is up in this file: choose the other axis if it lies on its side` };
}
