/* Geometry of meshes and clouds: polygons as triangles, and points drawn by a seed. */

const TOLERANCE = 1e-6;  // rounding of the corners relative to the size, as in files with six digits

const minus = (a, b) => a.map((number, i) => number - b[i]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((number) => number / Math.hypot(...a));

/** Add the triangles of a polygon; `corners` are indices of vertices x, y, z, x, y, z, ... */
export function addPolygon(triangles, corners, vertices) {
  const ears = corners.length > 3 ? earsOf(corners.map((corner) => vertices.slice(3 * corner, 3 * corner + 3))) : null;
  if (ears) triangles.push(...ears.map((index) => corners[index]));
  else for (let i = 2; i < corners.length; i++) triangles.push(corners[0], corners[i - 1], corners[i]);
}

/** The corners of the triangles, as indices of `corners`; null if a fan is right, or if the polygon crosses itself. */
function earsOf(corners) {
  const [x, y] = flattened(corners), left = corners.map((_, i) => i), ears = [];
  /** Twice the signed area of a triangle, positive if it has the orientation of the polygon. */
  const turn = (a, b, c) => (x[b] - x[a]) * (y[c] - y[a]) - (y[b] - y[a]) * (x[c] - x[a]);
  if (!isFolded(x.map((number, i) => Math.hypot(number, y[i])), turn)) return null;
  const isAt = (a, b) => x[a] === x[b] && y[a] === y[b];
  const isIn = (p, a, b, c) => turn(a, b, p) >= 0 && turn(b, c, p) >= 0 && turn(c, a, p) >= 0;
  const isEar = (a, b, c) =>
    turn(a, b, c) > 0 && !left.some((p) => isIn(p, a, b, c) && !isAt(p, a) && !isAt(p, b) && !isAt(p, c));
  const around = (i) => [left.at(i - 1), left[i], left[(i + 1) % left.length]];
  while (left.length > 3) {
    const ear = left.findIndex((_, i) => isEar(...around(i)));
    if (ear < 0) return null;
    ears.push(...around(ear));
    left.splice(ear, 1);
  }
  return [...ears, ...left];
}

/** Coordinates x and y of the corners in the plane of Newell's normal: counter-clockwise, the first at the origin. */
function flattened(corners) {
  const points = corners.map((point) => minus(point, corners[0]));
  const sum = points.reduce((all, point, i) => minus(all, cross(points[(i + 1) % points.length], point)), [0, 0, 0]);
  const normal = unit(sum), sizes = normal.map(Math.abs), least = sizes.indexOf(Math.min(...sizes));
  const across = unit(cross(normal, [0, 1, 2].map((axis) => Number(axis === least)))), upwards = cross(normal, across);
  return [across, upwards].map((direction) => points.map((point) => dot(point, direction)));
}

/** True if a triangle of the fan has the opposite orientation, so that it lies outside of the polygon. */
function isFolded(lengths, turn) {
  const size = Math.max(...lengths);
  return lengths.some((_, i) => i > 1 && turn(0, i - 1, i) < -TOLERANCE * size * (lengths[i - 1] + lengths[i]));
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

/** Points of a shape, a Float64Array [3 n]: n of a mesh, at most n of a cloud. The first k do not depend on n >= k. */
export function samplePoints(shape, n, seed) {
  return shape.triangles ? ofMesh(shape, n, randomFrom(seed)) : ofCloud(shape.vertices, n, randomFrom(seed));
}

/** Triangles with probability proportional to area, points uniform in each (Osada et al., ACM TOG 21(4), 2002). */
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
