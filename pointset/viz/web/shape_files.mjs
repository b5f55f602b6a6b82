/* Reads shapes from files: meshes {vertices, triangles}, and clouds, whose triangles are null. */
import { addPolygon } from "./meshes.mjs";

/** A file that cannot be read; the message names the file, the line or byte, and what was expected. */
export class ReadError extends Error {}

const READERS = { off: parseOff, obj: parseObj, ply: parsePly, stl: parseStl, xyz: parseXyz, txt: parseXyz };
const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const QUOTED = 60;

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

/** Decode a text file with one character per byte, so that names and comments in any encoding are accepted. */
function textOf(bytes) {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return new TextDecoder("latin1").decode(marked ? bytes.subarray(3) : bytes);
}

/** The lines of a text that are not blank, as words; in an error message, the current line has its number. */
class Lines {
  /** `comment`: where a comment begins, or null; `first`: the number of the first line. */
  constructor(text, name, comment = /#.*/, first = 1) {
    Object.assign(this, { lines: text.split(/\r\n?|\n/), name, comment, first, at: -1 });
  }

  /** The words of the next line that is not blank; null at the end. */
  next() {
    while (++this.at < this.lines.length) {
      const line = this.lines[this.at];
      // Only ASCII blanks separate words: a no-break space is an error.
      const words = (this.comment ? line.replace(this.comment, "") : line).split(/[ \t\v\f]+/).filter(Boolean);
      if (words.length) return words;
    }
    return null;
  }

  /** The words of the next line that is not blank; throws at the end of the file, naming what was expected. */
  take(expected) {
    const words = this.next();
    if (!words) throw this.error(expected);
    return words;
  }

  end(expected = "the end of the file") { if (this.next()) throw this.error(expected); }

  /** Words as finite numbers. */
  numbers(words) {
    const numbers = words.map((word) => (DECIMAL.test(word) ? Number(word) : NaN));
    if (!numbers.every(Number.isFinite)) throw this.error("finite numbers");
    return numbers;
  }

  /** Words as indices below a count. */
  indices(words, count) {
    if (!words.every((word) => /^\d{1,9}$/.test(word) && Number(word) < count))
      throw this.error(`vertex indices from 0 to ${count - 1}`);
    return words.map(Number);
  }

  /** The error for a line, which has something other than expected; by default the current line. */
  error(expected, at = this.at) {
    const isOver = at >= this.lines.length, last = Math.max(0, this.lines.findLastIndex((line) => line.trim()));
    const plain = isOver ? "" : this.lines[at].trim().replace(/[^ -~]/g, "?");
    const excerpt = plain.length > QUOTED ? `${plain.slice(0, QUOTED)}…` : plain;
    const ending = isOver ? " after this line, found the end of the file" : `, found '${excerpt}'`;
    return new ReadError(`${this.name}, line ${this.first + (isOver ? last : at)}: expected ${expected}${ending}`);
  }
}

/** A mesh of polygons, which are lists of vertex indices; throws if there are none. */
function meshOf(vertices, polygons, name) {
  const triangles = [];
  for (const polygon of polygons) addPolygon(triangles, polygon, vertices);
  if (!triangles.length) throw new ReadError(`${name}: expected a mesh, found no triangles`);
  return { vertices: Float64Array.from(vertices), triangles: Int32Array.from(triangles) };
}

/** Read OFF, the format of ModelNet; normals, colours and texture coordinates are left out. */
function parseOff(bytes, name) {
  const lines = new Lines(textOf(bytes), name), [first, ...words] = lines.take("the word OFF");
  const [, glued] = /^(?:ST|C|N)*OFF(.*)$/.exec(first) ?? [];
  if (glued === undefined) throw lines.error("the word OFF");
  const rest = glued ? [glued, ...words] : words, expected = "the counts of vertices, faces and edges";
  const counts = rest.length ? rest : lines.take(expected);
  if (![2, 3].includes(counts.length) || !counts.every((word) => /^\d{1,9}$/.test(word))) throw lines.error(expected);
  const [vertexCount, faceCount] = counts.map(Number), vertices = [], polygons = [];
  for (let i = 0, width = 0; i < vertexCount; i++) {
    const which = `vertex ${i} of ${vertexCount}`, numbers = lines.numbers(lines.take(which));
    width ||= Math.max(3, numbers.length);
    if (numbers.length !== width) throw lines.error(`${width} numbers for ${which}`);
    vertices.push(...numbers.slice(0, 3));
  }
  for (let i = 0; i < faceCount; i++) {
    const which = `face ${i} of ${faceCount}`, [size, ...corners] = lines.numbers(lines.take(which));
    if (!(Number.isInteger(size) && size >= 3)) throw lines.error(`at least 3 vertices in ${which}`);
    // After the corners, a face may have a colour of 1, 3 or 4 numbers.
    if (![0, 1, 3, 4].includes(corners.length - size)) throw lines.error(`${size} vertex indices in ${which}`);
    polygons.push(lines.indices(corners.slice(0, size).map(String), vertexCount));
  }
  lines.end(`the end of the file after ${vertexCount} vertices and ${faceCount} faces`);
  return meshOf(vertices, polygons, name);
}

/** Read Wavefront OBJ: vertices and polygons; everything else is ignored. */
function parseObj(bytes, name) {
  const lines = new Lines(textOf(bytes), name), vertices = [], faces = [];
  for (let words; (words = lines.next());) {
    if (words[0] === "v") {
      if (words.length < 4) throw lines.error("3 coordinates of a vertex");
      vertices.push(...lines.numbers(words.slice(1, 4)));
    } else if (words[0] === "f") {
      const above = vertices.length / 3, corners = words.slice(1).map((corner) => Number(corner.split("/")[0]));
      if (corners.some((corner) => !Number.isInteger(corner) || !corner || corner < -above))
        throw lines.error(`vertex indices from 1 on, or from -${above} to -1`);
      faces.push({ corners: corners.map((corner) => (corner > 0 ? corner - 1 : above + corner)), at: lines.at });
    }
  }
  const last = vertices.length / 3, wrong = faces.find(({ corners }) => Math.max(...corners) >= last);
  if (wrong) throw lines.error(`vertex indices up to ${last}, the vertices of the file`, wrong.at);
  return meshOf(vertices, faces.map(({ corners }) => corners), name);
}

/** Read .xyz and .txt: one point per line, coordinates first, after a line of names or none. */
function parseXyz(bytes, name) {
  const lines = new Lines(textOf(bytes), name, /(?:#|\/\/).*/), points = [];
  let width = 0;
  for (let words; (words = lines.next());) {
    const line = words.join(" "), separator = [",", ";"].find((character) => line.includes(character)) ?? " ";
    const columns = line.split(separator).map((word) => word.trim());
    if (!width && columns.every((word) => Number.isNaN(Number(word)))) continue;
    const numbers = lines.numbers(columns);
    width ||= numbers.length;
    if (numbers.length < 3 || numbers.length !== width)
      throw lines.error(width < 3 ? "3 numbers or more on every line" : `${width} numbers, as on the lines above`);
    points.push(...numbers.slice(0, 3));
  }
  if (!points.length) throw new ReadError(`${name}, line 1: expected points, found none`);
  return { vertices: Float64Array.from(points), triangles: null };
}

const TYPES = {
  char: "Int8", uchar: "Uint8", short: "Int16", ushort: "Uint16", int: "Int32", uint: "Uint32", float: "Float32",
  double: "Float64", int8: "Int8", uint8: "Uint8", int16: "Int16", uint16: "Uint16", int32: "Int32", uint32: "Uint32",
  float32: "Float32", float64: "Float64",
};
const FORMATS = ["ascii", "binary_little_endian", "binary_big_endian"];

/** Read PLY (G. Turk, "The PLY Polygon File Format", 1994): a mesh, or a cloud if it has no faces. */
function parsePly(bytes, name) {
  const { format, elements, start, line } = plyHeader(bytes, name), vertices = [], polygons = [];
  const source = format === "ascii" ? textValues(bytes, name, start, line) : binaryValues(bytes, name, start, format);
  for (const { name: kind, count, properties } of elements)
    for (let entry = 0; entry < count; entry++) {
      source.begin(`${kind} ${entry} of ${count}`);
      const values = {};
      for (const { name: property, type, length } of properties) {
        const size = length ? source.number(length) : 1;
        if (!(Number.isInteger(size) && size >= 0 && size <= bytes.length)) throw source.error("the length of a list");
        const numbers = Array.from({ length: size }, () => source.number(type));
        values[property] = length ? numbers : numbers[0];
      }
      const { x, y, z, vertex_indices: corners = values.vertex_index } = values, last = vertices.length / 3 - 1;
      if (kind === "vertex") {
        if (![x, y, z].every(Number.isFinite)) throw source.error("finite coordinates x, y and z");
        vertices.push(x, y, z);
      } else if (kind === "face") {
        if (!corners?.every((index) => Number.isInteger(index) && index >= 0 && index <= last))
          throw source.error(`a list vertex_indices of whole numbers from 0 to ${last}`);
        polygons.push(corners);
      }
      source.end();
    }
  source.finish();
  if (!vertices.length) throw new ReadError(`${name}: expected a mesh or a cloud, found no vertices`);
  if (polygons.length) return meshOf(vertices, polygons, name);
  return { vertices: Float64Array.from(vertices), triangles: null };
}

function plyHeader(bytes, name) {
  const head = textOf(bytes.subarray(0, 1 << 16)), end = /^end_header[ \t]*(?:\r\n|\r|\n|$)/m.exec(head);
  if (!/^ply\s/.test(head) || !end)
    throw new ReadError(`${name}, line 1: expected the header of a PLY file, from ply to end_header`);
  const lines = new Lines(head.slice(0, end.index), name, /^(?:ply|comment|obj_info)\b.*/), elements = [];
  let format = null;
  for (let words; (words = lines.next());) {
    const [keyword, ...rest] = words, properties = elements.at(-1)?.properties;
    // A second one of the same name would leave open which is valid.
    const isNew = !properties?.some((other) => other.name === rest.at(-1));
    if (keyword === "format" && !format && FORMATS.includes(rest[0])) [format] = rest;
    else if (keyword === "element" && !elements.some(({ name }) => name === rest[0]) && /^\d{1,9}$/.test(rest[1]))
      elements.push({ name: rest[0], count: Number(rest[1]), properties: [] });
    else if (keyword === "property" && properties && isNew) properties.push(property(lines, rest));
    else throw lines.error("a format, an element or a property");
  }
  if (!format) throw new ReadError(`${name}: expected a format, one of ${FORMATS.join(", ")}`);
  if (elements.some((element) => element.name === "tristrips" && element.count))
    throw new ReadError(`${name}: expected a mesh of faces, found strips of triangles: save it with faces`);
  const start = end.index + end[0].length, line = head.slice(0, start).split(/\r\n?|\n/).length;
  return { format, elements: elements.filter((element) => element.properties.length), start, line };
}

function property(lines, words) {
  const [length, type, name, ...more] = words[0] === "list" ? words.slice(1) : [null, ...words];
  const counts = length === null || (TYPES[length] && !TYPES[length].startsWith("Float"));
  if (!TYPES[type] || !name || !counts || more.length) throw lines.error("a property with a type of PLY and a name");
  return { name, type: TYPES[type], length: length && TYPES[length] };
}

/** The values of a PLY file as text, one entry per line; properties other than coordinates may be nan. */
function textValues(bytes, name, start, first) {
  const lines = new Lines(textOf(bytes.subarray(start)), name, null, first);
  let words = [];
  const number = () => {
    if (!words.length) throw lines.error("more numbers on this line");
    return Number(words.shift());
  };
  const begin = (which) => { words = lines.take(which); };
  const end = () => { if (words.length) throw lines.error("fewer numbers on this line"); };
  return { begin, number, end, finish: () => lines.end(), error: (expected) => lines.error(expected) };
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
  const finish = () => {
    if (at !== bytes.length) throw error(`the end of the file, found ${bytes.length - at} bytes more`);
  };
  return { begin() {}, number, end() {}, finish, error };
}

const HEADER = 84, RECORD = 50;
const KEYWORDS = "solid facet outer vertex endloop endfacet endsolid".split(" ");

/** Read STL: binary if the file has the size for the number of triangles in its header, else text if it begins so. */
function parseStl(bytes, name) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), text = textOf(bytes);
  const count = bytes.length < HEADER ? 0 : view.getUint32(HEADER - 4, true), size = HEADER + RECORD * count;
  if (bytes.length !== size && /^\s*solid\s[^]*facet/i.test(text)) return textStl(text, name);
  if (bytes.length < size || bytes.length < HEADER)
    throw new ReadError(`${name}: a binary STL of ${count} triangles has ${size} bytes, found ${bytes.length}`);
  const number = (_, i) => view.getFloat32(HEADER + RECORD * Math.floor(i / 9) + 12 + 4 * (i % 9), true);
  const vertices = Float64Array.from({ length: 9 * count }, number);
  const odd = vertices.findIndex((x) => !Number.isFinite(x));
  if (odd >= 0) throw new ReadError(`${name}: expected finite coordinates in triangle ${Math.floor(odd / 9)}`);
  return facetsOf(vertices, name);
}

function textStl(text, name) {
  const lines = new Lines(text, name, null), vertices = [];
  for (let words; (words = lines.next());) {
    const keyword = words[0].toLowerCase();
    if (!KEYWORDS.includes(keyword)) throw lines.error(`one of ${KEYWORDS.join(", ")}`);
    if (keyword === "vertex") {
      if (words.length !== 4) throw lines.error("3 coordinates of a vertex");
      vertices.push(...lines.numbers(words.slice(1)));
    } else if (!keyword.startsWith("end") && vertices.length % 9) throw lines.error("3 vertices of each facet");
  }
  if (vertices.length % 9) throw lines.error("3 vertices of each facet");
  return facetsOf(vertices, name);
}

/** A mesh of triangles with 9 coordinates each. */
function facetsOf(vertices, name) {
  return meshOf(vertices, Array.from({ length: vertices.length / 9 }, (_, i) => [3 * i, 3 * i + 1, 3 * i + 2]), name);
}
