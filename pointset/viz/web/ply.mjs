/* Reads PLY, text and binary (G. Turk, "The PLY Polygon File Format", 1994): a mesh, or a cloud if it has no faces. */
import { excerpt, Lines, meshOf, ReadError, textOf } from "./lines.mjs";
import { addPolygon } from "./polygons.mjs";

const TYPES = {
  char: "Int8", uchar: "Uint8", short: "Int16", ushort: "Uint16", int: "Int32", uint: "Uint32", float: "Float32",
  double: "Float64", int8: "Int8", uint8: "Uint8", int16: "Int16", uint16: "Uint16", int32: "Int32", uint32: "Uint32",
  float32: "Float32", float64: "Float64",
};
const FORMATS = ["ascii", "binary_little_endian", "binary_big_endian"];
const CORNERS = ["vertex_indices", "vertex_index"];

export function parsePly(bytes, name) {
  const header = headerOf(bytes, name);
  const vertex = header.elements.find((element) => element.name === "vertex" && element.count);
  if (!vertex) throw new ReadError(`${name}: expected a mesh or a cloud, found no vertices`);
  const places = ["x", "y", "z"].map((axis) => vertex.properties.findIndex((one) => one.name === axis && !one.length));
  if (places.includes(-1)) throw new ReadError(`${name}: expected x, y and z of every vertex`);
  const read = header.format === "ascii" ? readText : readBinary;
  const vertices = [], polygons = [];
  read(bytes, name, header, (element, values, fault) => {
    if (element === vertex) vertices.push(...places.map((place) => finite(values[place], fault)));
    else if (element.name === "face") polygons.push(cornersOf(element, values, vertex.count, fault));
  });
  if (!polygons.length) return { vertices: Float64Array.from(vertices), triangles: null };
  const triangles = [];
  for (const corners of polygons) addPolygon(triangles, corners, vertices);
  return meshOf(vertices, triangles, name);
}

function finite(number, fault) {
  if (!Number.isFinite(number)) throw fault("finite coordinates");
  return number;
}

function cornersOf(element, values, count, fault) {
  const place = element.properties.findIndex((one) => CORNERS.includes(one.name) && one.length && !one.type.startsWith("Float"));
  if (place < 0) throw fault("a list vertex_indices of whole numbers for every face");
  const corners = values[place];
  if (corners.length < 3) throw fault("at least 3 corners of a face");
  if (corners.some((corner) => !(corner >= 0 && corner < count))) throw fault(`vertex indices from 0 to ${count - 1}`);
  return corners;
}

function headerOf(bytes, name) {
  const head = textOf(bytes.subarray(0, 1 << 16)), end = /(?:^|[\r\n])end_header[ \t]*(?:\r\n|\r|\n|$)/.exec(head);
  if (!/^ply\s/.test(head) || !end)
    throw new ReadError(`${name}, line 1: expected the header of a PLY file, from ply to end_header`);
  const lines = new Lines(head.slice(0, end.index + 1), name, { comment: null }), elements = [];
  let format = null, words = (lines.next(), lines.next());
  for (; words; words = lines.next()) {
    const [keyword, ...rest] = words;
    if (keyword === "comment" || keyword === "obj_info") continue;
    // Each may occur once: if there were two, it would be ambiguous which is valid.
    if (keyword === "format" && !format && FORMATS.includes(rest[0]) && rest[1] === "1.0" && rest.length === 2)
      [format] = rest;
    else if (keyword === "element" && format && rest.length === 2 && !named(elements, rest[0]))
      elements.push({ name: rest[0], count: lines.whole(rest[1]), properties: [] });
    else if (keyword === "property" && elements.length && !named(elements.at(-1).properties, rest.at(-1)))
      elements.at(-1).properties.push(property(lines, rest));
    else throw lines.error("a format, an element or a property");
  }
  if (elements.some((element) => element.name === "tristrips" && element.count))
    throw new ReadError(`${name}: expected a mesh of faces, found strips of triangles: save it with faces`);
  const bare = elements.find((element) => element.count && !element.properties.length);
  if (bare) throw new ReadError(`${name}: expected properties of its element ${excerpt(bare.name)}`);
  if (!format) throw new ReadError(`${name}: expected a format, one of ${FORMATS.join(", ")}`);
  const offset = end.index + end[0].length;
  return { format, elements, offset, line: head.slice(0, offset).split(/\r\n?|\n/).length };
}

const named = (those, name) => those.some((one) => one.name === name);

function property(lines, words) {
  const [length, type, name, ...more] = words[0] === "list" ? words.slice(1) : [null, ...words];
  const counts = length === null || (TYPES[length] && !TYPES[length].startsWith("Float"));
  if (!TYPES[type] || !name || !counts || more.length)
    throw lines.error("a property with a type of PLY and a name");
  return { name, type: TYPES[type], length: length && TYPES[length] };
}

/** The number, if its type can represent it; throws otherwise, or if the number is missing. */
function fitting(number, type, lines) {
  const [, kind, bits] = /^(\D+)(\d+)$/.exec(type), least = kind === "Int" ? -(2 ** (bits - 1)) : 0;
  if (number === undefined) throw lines.error("more numbers on this line");
  if (kind !== "Float" && !(Number.isInteger(number) && number >= least && number < least + 2 ** bits))
    throw lines.error(`a whole number from ${least} to ${least + 2 ** bits - 1}`);
  return number;
}

function readText(bytes, name, header, on) {
  const lines = new Lines(textOf(bytes.subarray(header.offset)), name, { comment: null, first: header.line });
  for (const element of header.elements)
    for (let entry = 0; entry < element.count; entry++) {
      const numbers = lines.numbers(lines.take(`${element.name} ${entry} of ${element.count}`), 0), values = [];
      let at = 0;
      const take = (type) => fitting(numbers[at++], type, lines);
      for (const one of element.properties)
        values.push(one.length ? Array.from({ length: take(one.length) }, () => take(one.type)) : take(one.type));
      if (at !== numbers.length) throw lines.error(`the numbers of ${element.name} ${entry} of ${element.count}`);
      on(element, values, (expected) => lines.error(expected));
    }
  if (lines.next()) throw lines.error("the end of the file");
}

function readBinary(bytes, name, header, on) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), little = header.format.includes("little");
  let at = header.offset;
  const fault = (expected) => new ReadError(`${name}, byte ${at}: expected ${expected}`);
  const number = (type) => {
    const size = Number(/\d+/.exec(type)[0]) / 8;
    if (at + size > bytes.length) throw fault(`more of what its header announces, found the end of the file`);
    const value = view[`get${type}`](at, little);
    at += size;
    return value;
  };
  for (const element of header.elements)
    for (let entry = 0; entry < element.count; entry++) {
      const values = element.properties.map((one) => {
        if (!one.length) return number(one.type);
        const size = number(one.length);
        if (!(size >= 0 && size <= bytes.length)) throw fault("the length of a list");
        return Array.from({ length: size }, () => number(one.type));
      });
      on(element, values, fault);
    }
  if (at !== bytes.length) throw fault(`the end of the file, found ${excerpt(`${bytes.length - at} bytes more`)}`);
}
