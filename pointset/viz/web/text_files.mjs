/* Reads shapes written as text: OFF, OBJ and XYZ, line by line, with the number of the line in error messages. */
import { addPolygon } from "./meshes.mjs";

/** A file that cannot be read; the message names the file, the line or byte, and what was expected. */
export class ReadError extends Error {}

const DECIMAL = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const QUOTED = 60;

/** Decode a text file with one character per byte, so that names and comments in any encoding are accepted. */
export function textOf(bytes) {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return new TextDecoder("latin1").decode(marked ? bytes.subarray(3) : bytes);
}

export class Lines {
  /** `comment`: where a comment begins, or null; `first`: the number of the first line. */
  constructor(text, name, { comment = /#.*/, first = 1 } = {}) {
    Object.assign(this, { lines: text.split(/\r\n?|\n/), name, comment, first, at: -1, words: [] });
  }

  /** The words of the next line that is not blank; null at the end. */
  next() {
    while (++this.at < this.lines.length) {
      const line = this.lines[this.at];
      // Only ASCII blanks separate words: a no-break space is an error.
      this.words = (this.comment ? line.replace(this.comment, "") : line).split(/[ \t\v\f]+/).filter(Boolean);
      if (this.words.length) return this.words;
    }
    return null;
  }

  /** The words of the next line that is not blank; throws at the end of the file, naming what was expected. */
  take(expected) {
    if (!this.next()) throw this.error(expected);
    return this.words;
  }

  /** Words as finite numbers. */
  numbers(words) {
    const numbers = words.map((word) => (DECIMAL.test(word) ? Number(word) : NaN));
    if (!numbers.every(Number.isFinite)) throw this.error("finite numbers");
    return numbers;
  }

  whole(word) {
    if (!/^[+-]?\d{1,15}$/.test(word)) throw this.error("whole numbers");
    return Number(word);
  }

  /** The error for a line, which has something other than expected; by default the current line. */
  error(expected, at = this.at) {
    const isOver = at >= this.lines.length, last = Math.max(0, this.lines.findLastIndex((line) => line.trim()));
    const ending = isOver ? " after this line, found the end of the file" : `, found ${excerpt(this.lines[at])}`;
    return new ReadError(`${this.name}, line ${this.first + (isOver ? last : at)}: expected ${expected}${ending}`);
  }
}

/** A text in quotes, shortened, with "?" for characters that do not print. */
function excerpt(text) {
  const plain = text.trim().replace(/[^ -~]/g, "?");
  return `'${plain.length > QUOTED ? `${plain.slice(0, QUOTED)}…` : plain}'`;
}

/** A mesh from arrays of numbers; throws if it has no triangles. */
export function meshOf(vertices, triangles, name) {
  if (!triangles.length) throw new ReadError(`${name}: expected a mesh, found no triangles`);
  return { vertices: Float64Array.from(vertices), triangles: Int32Array.from(triangles) };
}

const SIZES = { ST: [2], C: [3, 4], N: [3], 4: [1] };
const COLOURS = [0, 1, 3, 4];

/** Read OFF, the format of ModelNet, as `pointset.data` does. */
export function parseOff(text, name) {
  const lines = new Lines(text, name), { prefixes, rest } = header(lines);
  const [vertexCount, faceCount] = counts(lines, rest), vertices = [], triangles = [];
  let sizes = prefixes.reduce((all, prefix) => all.flatMap((size) => SIZES[prefix].map((more) => size + more)), [3]);
  for (let i = 0; i < vertexCount; i++) {
    const words = lines.take(`vertex ${i} of ${vertexCount}`);
    if (!sizes.includes(words.length))
      throw lines.error(`${sizes.join(" or ")} numbers for vertex ${i} of ${vertexCount}`);
    sizes = [words.length];  // as in the first line: a missing coordinate could look like a shorter colour
    const numbers = lines.numbers(words), weight = prefixes.includes("4") ? numbers[3] : 1;
    const position = numbers.slice(0, 3).map((number) => number / weight);
    if (!position.every(Number.isFinite)) throw lines.error("finite coordinates");
    vertices.push(...position);
  }
  for (let i = 0; i < faceCount; i++)
    addPolygon(triangles, face(lines, `face ${i} of ${faceCount}`, vertexCount), vertices);
  if (lines.next()) throw lines.error(`the end of the file after ${vertexCount} vertices and ${faceCount} faces`);
  return meshOf(vertices, triangles, name);
}

function header(lines) {
  const [first, ...words] = lines.take("the word OFF"), match = /^((?:ST|C|N|4)*)OFF(.*)$/.exec(first);
  if (!match) throw lines.error("the word OFF, with ST, C, N or 4 before it or nothing");
  const prefixes = match[1].match(/ST|C|N|4/g) ?? [], rest = match[2] ? [match[2], ...words] : words;
  if (new Set(prefixes).size < prefixes.length) throw lines.error("each of ST, C, N and 4 only once before OFF");
  if (rest[0] === "BINARY") throw lines.error("OFF as text, not its binary form");
  return { prefixes, rest };
}

function counts(lines, rest) {
  const expected = "the counts of vertices, faces and edges", words = rest.length ? rest : lines.take(expected);
  if (![2, 3].includes(words.length) || !words.every((word) => /^\d{1,9}$/.test(word))) throw lines.error(expected);
  if (!Number(words[0]) || !Number(words[1])) throw lines.error("at least one vertex and one face");
  return words.map(Number);
}

function face(lines, which, vertexCount) {
  const words = lines.take(which), size = lines.whole(words[0]), colour = words.slice(size + 1);
  if (size < 3) throw lines.error(`at least 3 vertices in ${which}`);
  if (words.length - 1 < size) throw lines.error(`${size} vertex indices in ${which}`);
  if (!COLOURS.includes(colour.length))
    throw lines.error(`${which} to end after ${size} indices and a colour of 0, 1, 3 or 4 numbers`);
  lines.numbers(colour);
  const corners = words.slice(1, size + 1).map((word) => lines.whole(word));
  if (corners.some((corner) => corner < 0 || corner >= vertexCount))
    throw lines.error(`vertex indices from 0 to ${vertexCount - 1} in ${which}`);
  return corners;
}

/** Read Wavefront OBJ: vertices and polygons; everything else is ignored. */
export function parseObj(text, name) {
  const lines = new Lines(text, name), vertices = [], faces = [], triangles = [];
  joinContinued(lines.lines);
  for (let words; (words = lines.next());) {
    if (words[0] === "v") {
      if (words.length < 4) throw lines.error("3 coordinates of a vertex");
      vertices.push(...lines.numbers(words.slice(1, 4)));
    } else if (words[0] === "f") {
      const above = vertices.length / 3, corners = words.slice(1).map((corner) => lines.whole(corner.split("/")[0]));
      if (corners.some((corner) => !corner || corner < -above))
        throw lines.error(`vertex indices from 1 on, or from -${above} to -1`);
      faces.push({ corners: corners.map((corner) => (corner > 0 ? corner - 1 : above + corner)), at: lines.at });
    }
  }
  for (const { corners, at } of faces) {
    const last = vertices.length / 3;
    if (Math.max(...corners) >= last) throw lines.error(`vertex indices up to ${last}, the vertices of the file`, at);
    addPolygon(triangles, corners, vertices);
  }
  return meshOf(vertices, triangles, name);
}

/** Join lines that end in a backslash with the next one, unless the backslash ends a path or splits a number. */
function joinContinued(lines) {
  for (let i = lines.length - 2; i >= 0; i--) {
    const apart = /\s\\$/.test(lines[i]) || /^\s/.test(lines[i + 1]);
    if (/^[^#]*\\$/.test(lines[i]) && apart && !/^\s*(?:g|o|usemtl|mtllib|usemap|maplib)\s/.test(lines[i]))
      lines.splice(i, 2, lines[i].slice(0, -1) + lines[i + 1], "");
  }
}

/** Read .xyz and .txt: one point per line, coordinates first, after a line of names or none. */
export function parseXyz(text, name) {
  const lines = new Lines(text, name, { comment: /(?:#|\/\/).*/ }), points = [];
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
