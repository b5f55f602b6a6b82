/* Reads shapes from files, and samples points of meshes {vertices, triangles}, and of clouds (triangles are null). */

/** The error for a file that cannot be read. The message names the file, the line if known, and what was expected. */
export class ReadError extends Error {}

const READERS = { off: parseOff, obj: parseObj, xyz: parsePoints, txt: parsePoints, csv: parsePoints };

/**
 * Read a shape from the bytes of a file: vertices, a Float64Array [3 V], and triangles, an Int32Array [3 F] or null.
 * Throws a ReadError.
 */
export function readShape(bytes, name) {
  const suffix = /\.(\w+)$/.exec(name)?.[1].toLowerCase() ?? "";
  if (!Object.hasOwn(READERS, suffix)) {
    const suffixes = Object.keys(READERS).map((known) => `.${known}`).join(", ");
    const expected = `expected a file that ends in one of ${suffixes}`;
    throw new ReadError(`${name}: ${expected}; pointset attend --live reads more formats`);
  }
  return READERS[suffix](bytes, name);
}

/** The lines of a text file that are not blank, as words without comments. */
class Lines {
  constructor(bytes, name, comment = /#.*/) {
    // Each byte is one character, so that names and comments in any encoding are accepted.
    const text = new TextDecoder("latin1").decode(bytes).replace(/^ï»¿/, "");
    const lines = text.split(/\r\n?|\n/).map((line) => line.replace(comment, "").trim());
    const numbered = lines.map((line, i) => [line, i + 1]).filter(([line]) => line);
    Object.assign(this, { name, numbered, at: -1 });
  }

  /** The words of the next line; null at the end of the file. */
  next() {
    const [line] = this.numbered[++this.at] ?? [];
    return line === undefined ? null : line.split(/\s+/);
  }

  /** The words of the next line as numbers; throws unless the first `count` are finite. */
  numbers(count, expected, words = this.next()) {
    const numbers = (words ?? []).map((word) => (word.trim() ? Number(word) : NaN));
    if (numbers.length < count || !numbers.slice(0, count).every(Number.isFinite)) throw this.error(expected);
    return numbers;
  }

  error(expected) {
    const [line, number] = this.numbered[this.at] ?? ["the end of the file", this.numbered.at(-1)?.[1] ?? 1];
    return new ReadError(`${this.name}, line ${number}: expected ${expected}, found ${line.slice(0, 60)}`);
  }
}

/** A mesh of polygons (lists of vertex indices). Each becomes a fan of triangles, exact if it is convex. */
function meshOf(vertices, polygons, name) {
  const count = vertices.length / 3, triangles = [];
  for (const polygon of polygons) {
    if (!polygon.every((corner) => Number.isInteger(corner) && corner >= 0 && corner < count))
      throw new ReadError(`${name}: expected faces of its ${count} vertices, found a face of ${polygon.join(", ")}`);
    for (let i = 2; i < polygon.length; i++) triangles.push(polygon[0], polygon[i - 1], polygon[i]);
  }
  if (!triangles.length) throw new ReadError(`${name}: expected a mesh, found no triangles`);
  return { vertices: Float64Array.from(vertices), triangles: Int32Array.from(triangles) };
}

/** Read OFF, the format of ModelNet; normals, colours and texture coordinates are left out. */
function parseOff(bytes, name) {
  const lines = new Lines(bytes, name), [first, ...words] = lines.next() ?? [""];
  const [, glued] = /^(?:ST|C|N)*OFF(.*)$/.exec(first) ?? [];
  if (glued === undefined) throw lines.error("the word OFF");
  const rest = glued ? [glued, ...words] : words, counts = "the counts of vertices and faces";
  const [vertexCount, faceCount] = lines.numbers(2, counts, rest.length ? rest : lines.next());
  const vertices = [], polygons = [];
  for (let i = 0; i < vertexCount; i++)
    vertices.push(...lines.numbers(3, `vertex ${i} of ${vertexCount}`).slice(0, 3));
  for (let i = 0; i < faceCount; i++) {
    const which = `face ${i} of ${faceCount}`, [size, ...corners] = lines.numbers(1, which);
    if (!(size <= corners.length)) throw lines.error(`${size} vertex indices in ${which}`);
    polygons.push(corners.slice(0, size));
  }
  if (lines.next()) throw lines.error(`the end of the file after ${vertexCount} vertices and ${faceCount} faces`);
  return meshOf(vertices, polygons, name);
}

/** Read Wavefront OBJ: vertices and polygons, or only vertices for a cloud. Everything else is ignored. */
function parseObj(bytes, name) {
  const lines = new Lines(bytes, name), vertices = [], polygons = [];
  for (let words; (words = lines.next());) {
    const [keyword, ...rest] = words;
    if (keyword === "v") vertices.push(...lines.numbers(3, "3 coordinates", rest).slice(0, 3));
    if (keyword !== "f") continue;
    const corners = rest.map((corner) => Number(corner.split("/")[0]));
    polygons.push(corners.map((corner) => (corner > 0 ? corner - 1 : vertices.length / 3 + corner)));
  }
  if (!polygons.length && vertices.length) return { vertices: Float64Array.from(vertices), triangles: null };
  return meshOf(vertices, polygons, name);
}

/** Read text with one point per line, coordinates first. A first line without numbers is a header, and is skipped. */
function parsePoints(bytes, name) {
  const lines = new Lines(bytes, name, /(?:#|\/\/).*/), points = [];
  for (let words; (words = lines.next());) {
    const line = words.join(" "), columns = /[,;]/.test(line) ? line.split(/[,;]/) : words;
    if (lines.at > 0 || columns.some((column) => Number.isFinite(Number(column))))
      points.push(...lines.numbers(3, "3 coordinates", columns).slice(0, 3));
  }
  if (!points.length) throw new ReadError(`${name}: expected points, found none`);
  return { vertices: Float64Array.from(points), triangles: null };
}

/** A generator of random numbers in [0, 1): mulberry32 by T. Ettinger. */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Sample n points of a mesh, or at most n of a cloud: a Float64Array [3 n]. The first points do not depend on n. */
export function samplePoints(shape, n, seed) {
  return shape.triangles ? ofMesh(shape, n, randomFrom(seed)) : ofCloud(shape.vertices, n, randomFrom(seed));
}

/** Sample triangles proportionally to area, and points uniformly in them (Osada et al., ACM TOG 21(4), 2002). */
function ofMesh({ vertices, triangles }, n, random) {
  const count = triangles.length / 3, running = new Float64Array(count), points = new Float64Array(3 * n);
  let total = 0;
  for (let i = 0; i < count; i++) running[i] = total += area(vertices, triangles, i);
  if (!(total > 0)) throw new RangeError("the mesh has no area to sample: all its triangles are degenerate");
  for (let i = 0; i < n; i++) {
    const triangle = firstAbove(running, random() * total), root = Math.sqrt(random()), second = random();
    const shares = [1 - root, root * (1 - second), root * second];
    for (let corner = 0; corner < 3; corner++)
      for (let axis = 0; axis < 3; axis++)
        points[3 * i + axis] += shares[corner] * vertices[3 * triangles[3 * triangle + corner] + axis];
  }
  return points;
}

/** A random subset in random order. */
function ofCloud(vertices, n, random) {
  const order = shuffled(vertices.length / 3, random).subarray(0, n), points = new Float64Array(3 * order.length);
  order.forEach((from, to) => points.set(vertices.subarray(3 * from, 3 * from + 3), 3 * to));
  return points;
}

/** The integers from 0 to n - 1 in random order. */
export function shuffled(n, random) {
  const order = Int32Array.from({ length: n }, (_, i) => i);
  for (let i = n - 1; i > 0; i--) {
    const j = Math.floor(random() * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

function area(vertices, triangles, i) {
  const [a, b, c] = [0, 1, 2].map((corner) => 3 * triangles[3 * i + corner]);
  const [x, y, z] = [0, 1, 2].map((axis) => vertices[b + axis] - vertices[a + axis]);
  const [u, v, w] = [0, 1, 2].map((axis) => vertices[c + axis] - vertices[a + axis]);
  return Math.hypot(y * w - z * v, z * u - x * w, x * v - y * u);
}

/** The index of the first running sum above a number. */
function firstAbove(running, number) {
  let [low, high] = [0, running.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (running[middle] > number) high = middle; else low = middle + 1;
  }
  return low;
}
