/* Polygons cut into triangles, as `pointset.data.files.polygons` does: fans, or ears where a fan covers more. */

const TOLERANCE = 1e-6;  // how far a corner may be moved, as a share of the size: as files of six digits round it

const minus = (a, b) => a.map((number, i) => number - b[i]);
const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const length = (a) => Math.hypot(...a);

/** Adds a polygon of corners, which are places among the vertices x, y, z, x, y, z, ... */
export function addPolygon(triangles, corners, vertices) {
  const ears = corners.length > 3 ? earsOf(corners.map((corner) => vertices.slice(3 * corner, 3 * corner + 3))) : null;
  if (ears) triangles.push(...ears.map((place) => corners[place]));
  else for (let i = 2; i < corners.length; i++) triangles.push(corners[0], corners[i - 1], corners[i]);
}

/** The places of the corners of triangles; null where a fan will do, or where the polygon crosses itself. */
function earsOf(corners) {
  const points = corners.map((point) => minus(point, corners[0])), left = points.map((_, i) => i), ears = [];
  const normal = points.reduce((sum, point, i) => minus(sum, cross(points[(i + 1) % points.length], point)), [0, 0, 0]);
  /** Twice the area of a triangle, positive where it turns as the polygon does. */
  const turn = (a, b, c) => dot(cross(minus(points[b], points[a]), minus(points[c], points[a])), normal) / length(normal);
  if (!isFolded(points, turn)) return null;
  const isAt = (a, b) => points[a].every((number, i) => number === points[b][i]);
  const isEar = (a, b, c) => turn(a, b, c) > 0 && !left.some((p) =>
    ![a, b, c].some((one) => isAt(p, one)) && turn(a, b, p) >= 0 && turn(b, c, p) >= 0 && turn(c, a, p) >= 0);
  const around = (i) => [left.at(i - 1), left[i], left[(i + 1) % left.length]];
  while (left.length > 3) {
    const found = left.findIndex((_, i) => isEar(...around(i)));
    if (found < 0) return null;
    ears.push(...around(found));
    left.splice(found, 1);
  }
  return [...ears, ...left];
}

/** Whether a triangle of the fan turns against the polygon: it lies outside. */
function isFolded(points, turn) {
  const lengths = points.map(length), size = Math.max(...lengths);
  return points.some((_, i) => i > 1 && turn(0, i - 1, i) < -TOLERANCE * size * (lengths[i - 1] + lengths[i]));
}
