/* Triangulates polygons as `pointset.data.readers.polygons` does: a fan, or ear clipping if a fan would cover more. */

const TOLERANCE = 1e-6;  // rounding of the corners relative to the size, as in files with six digits

const minus = (a, b) => a.map((number, i) => number - b[i]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((number) => number / Math.hypot(...a));

/** Add the triangles of a polygon; `corners` are indices of vertices x, y, z, x, y, z, ... */
export function addPolygon(triangles, corners, vertices) {
  const ears = corners.length > 3 ? earsOf(corners.map((corner) => vertices.slice(3 * corner, 3 * corner + 3))) : null;
  if (ears) triangles.push(...ears.map((place) => corners[place]));
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
    const found = left.findIndex((_, i) => isEar(...around(i)));
    if (found < 0) return null;
    ears.push(...around(found));
    left.splice(found, 1);
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
