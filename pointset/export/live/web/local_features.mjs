/* Local features of points, as in `pointset.data.local_features` in Python, which documents the formulas. */
import { Matrix } from "./tensors.mjs";

const PAIRS = [[0, 0], [1, 1], [2, 2], [0, 1], [0, 2], [1, 2]];

/** The local features, a Matrix [n, width], of points [n, 3 or more]; `constants` come from Python. */
export function localFeatures(X, constants) {
  const { size, fewest, usual, epsilon, gap, nearest, smallest_part: smallestPart, scales, kind } = constants;
  const invariant = kind === "invariant";
  const points = unitCloud(X), n = points.length / 3, rows = [], normals = [], around = [];
  const k = Math.min(n, Math.max(fewest, roundHalfEven(size * Math.sqrt(Math.min(1, n / usual)))));
  const near = new Int32Array(k), squares = new Float64Array(k);
  for (let i = 0; i < n; i++) {
    nearestOf(points, i, near, squares);
    const place = [0, 1, 2].map((axis) => points[3 * i + axis]), mean = [0, 0, 0], C = Array(6).fill(0);
    for (let j = 0; j < k; j++) {
      const offset = place.map((x, axis) => points[3 * near[j] + axis] - x);
      offset.forEach((x, axis) => { mean[axis] += x / k; });
      PAIRS.forEach(([a, b], p) => { C[p] += offset[a] * offset[b] / k; });
    }
    PAIRS.forEach(([a, b], p) => { C[p] -= mean[a] * mean[b]; });
    const total = Math.max(C[0] + C[1] + C[2], Number.MIN_VALUE), unit = C.map((x) => x / total);
    const values = eigenvalues(unit), [s1, s2, s3] = values.map((x) => Math.sqrt(Math.max(x, 0) + epsilon));
    const r = Math.max(Math.sqrt(squares[k - 1]), nearest), [largest, middle, smallest] = values;
    const normal = products(unit, [smallest, largest, middle], gap), row = [(s1 - s2) / s1, (s2 - s3) / s1];
    row.push(Math.log(r) + Math.log(n / usual * size / k) / 2);
    const shifts = meanShifts(points, i, scales);
    if (!invariant) row.push(...shifts.flat());
    else {
      const tangent = products(unit, [largest, middle, smallest], gap), distance = Math.hypot(...place);
      const x = place.map((value) => value / Math.max(distance, nearest)), c = mean.map((value) => value / r);
      const facing = part(normal, x), towards = trace(normal, outer(x, c)) / Math.sqrt(facing ** 2 + epsilon);
      row.push(distance, facing, part(tangent, x), towards, part(normal, c), Math.hypot(...c));
      for (const v of shifts) row.push(Math.hypot(...v), dot(v, x), part(normal, v));
    }
    rows.push(row);
    normals.push(normal);
    around.push(near.slice(1));
  }
  if (invariant) rows.forEach((row, i) => row.push(...agreement(i)));
  rows.forEach((row, i) => row.push(...normals[i]));
  const numbers = new Matrix(n, rows[0]?.length ?? 0);
  rows.forEach((row, i) => numbers.data.set(row, i * row.length));
  return numbers;

  /** |v.w| for a vector w, where `own` has the products of the components of v. */
  function part(own, w) { return root(trace(own, outer(w, w))); }
  function root(square) { return Math.sqrt(Math.max(square, 0) + smallestPart ** 2); }

  /** Features of how well the normals in the neighbourhood of point i agree. */
  function agreement(i) {
    const sums = [0, 0, 0], own = normals[i];
    for (const j of around[i]) {
      const offset = [0, 1, 2].map((axis) => points[3 * j + axis] - points[3 * i + axis]);
      const u = offset.map((x) => x / Math.max(Math.hypot(...offset), nearest));
      [root(trace(own, normals[j])), part(own, u), part(normals[j], u)].forEach((x, q) => { sums[q] += x; });
    }
    return sums.map((x) => x / Math.max(k - 1, 1));
  }
}

/** Vectors from point i to weighted means of all points, with Gaussian weights of each scale, in units of the scale. */
function meanShifts(points, i, scales) {
  const place = points.subarray(3 * i, 3 * i + 3), sums = scales.map(() => [0, 0, 0, 0]);
  for (let j = 0; j < points.length; j += 3) {
    const offset = [0, 1, 2].map((axis) => points[j + axis] - place[axis]);
    const square = offset[0] ** 2 + offset[1] ** 2 + offset[2] ** 2;
    scales.forEach((scale, s) => {
      const weight = Math.exp(-square / 2 / scale ** 2);
      offset.forEach((x, axis) => { sums[s][axis] += weight * x; });
      sums[s][3] += weight;
    });
  }
  return sums.map(([x, y, z, total], s) => [x, y, z].map((sum) => sum / total / scales[s]));
}

function dot(v, w) { return v[0] * w[0] + v[1] * w[1] + v[2] * w[2]; }

/** The trace of the product of two symmetric matrices, and the symmetric part of v w^T, by `PAIRS`. */
function trace(A, B) { return PAIRS.reduce((sum, [a, b], p) => sum + (a === b ? 1 : 2) * A[p] * B[p], 0); }
function outer(v, w) { return PAIRS.map(([a, b]) => (v[a] * w[b] + v[b] * w[a]) / 2); }

/** Round to the nearest integer, and halves to the even integer, as Python does. */
function roundHalfEven(x) { return x % 1 === 0.5 ? 2 * Math.round(x / 2) : Math.round(x); }

/** The points, centred and divided by their root mean square radius. */
function unitCloud(X) {
  const n = X.rows, points = new Float64Array(3 * n), mean = [0, 0, 0];
  X.each((x, i, k) => { if (k < 3) { points[3 * i + k] = x; mean[k] += x / n; } });
  let total = 0;
  for (let i = 0; i < 3 * n; i++) { points[i] -= mean[i % 3]; total += points[i] ** 2 / n; }
  const radius = Math.sqrt(total) || 1;
  return points.map((x) => x / radius);
}

/** Fill `near` and `squares` with the nearest points of point i, itself included, and their squared distances. */
function nearestOf(points, i, near, squares) {
  const [x, y, z] = points.subarray(3 * i, 3 * i + 3), most = near.length;
  let filled = 0;
  for (let j = 0; j < points.length / 3; j++) {
    const square = (points[3 * j] - x) ** 2 + (points[3 * j + 1] - y) ** 2 + (points[3 * j + 2] - z) ** 2;
    if (filled === most && square >= squares[most - 1]) continue;
    let to = filled < most ? filled++ : most - 1;
    for (; to > 0 && squares[to - 1] > square; to--) { squares[to] = squares[to - 1]; near[to] = near[to - 1]; }
    squares[to] = square;
    near[to] = j;
  }
}

/** Eigenvalues of a symmetric matrix of trace 1 or 0, the largest first. */
function eigenvalues([xx, yy, zz, xy, xz, yz]) {
  const mean = (xx + yy + zz) / 3, [a, b, c] = [xx - mean, yy - mean, zz - mean];
  const spread = Math.sqrt(Math.max((a * a + b * b + c * c + 2 * (xy * xy + xz * xz + yz * yz)) / 6, 1e-14));
  const determinant = a * (b * c - yz * yz) - xy * (xy * c - yz * xz) + xz * (xy * yz - b * xz);
  const angle = Math.acos(Math.min(1, Math.max(-1, determinant / (2 * spread ** 3)))) / 3;
  const largest = mean + 2 * spread * Math.cos(angle), smallest = mean + 2 * spread * Math.cos(angle + 2 * Math.PI / 3);
  return [largest, 3 * mean - largest - smallest, smallest];
}

/** Products of the components of the eigenvector of `first`; they approach 0 if another eigenvalue is close. */
function products(C, [first, second, third], gap) {
  const [xx, yy, zz, xy, xz, yz] = C, own = (first - second) * (first - third), factor = own / (own * own + gap * gap);
  const square = [
    xx * xx + xy * xy + xz * xz, xy * xy + yy * yy + yz * yz, xz * xz + yz * yz + zz * zz,
    xx * xy + xy * yy + xz * yz, xx * xz + xy * yz + xz * zz, xy * xz + yy * yz + yz * zz,
  ];
  return square.map((x, p) => factor * (x - (second + third) * C[p] + (p < 3 ? second * third : 0)));
}
