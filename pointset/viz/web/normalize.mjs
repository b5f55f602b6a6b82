/* Normalises a cloud as in the training of a model: `pointset.normalize_points` in Python. */

const NORMALIZATIONS = {
  none: () => ({ centre: [0, 0, 0], size: 1 }),
  "unit-sphere": (points) => {
    const centre = middle(points);
    let most = 0;
    for (let i = 0; i < points.length; i += 3)
      most = Math.max(most, Math.hypot(points[i] - centre[0], points[i + 1] - centre[1], points[i + 2] - centre[2]));
    return { centre, size: most };
  },
  standardize: (points) => {
    const one = mean(points, 0, 1);
    return { centre: [one, one, one], size: deviation(points, [one, one, one]) };
  },
  "center-standardize": (points) => ({ centre: middle(points), size: deviation(points, middle(points)) }),
};

/** The normalised points, a Float32Array [3 n]; `how` is a key of `NORMALIZATIONS`. */
export function normalizePoints(points, how) {
  const { centre, size } = NORMALIZATIONS[how](points), scale = size > 0 ? size : 1;
  return Float32Array.from(points, (number, i) => (number - centre[i % 3]) / scale);
}

function middle(points) {
  return [0, 1, 2].map((axis) => mean(points, axis, 3));
}

function deviation(points, centre) {
  let squares = 0;
  for (let i = 0; i < points.length; i++) squares += (points[i] - centre[i % 3]) ** 2;
  return Math.sqrt(squares / points.length);
}

function mean(points, first, step) {
  let total = 0;
  for (let i = first; i < points.length; i += step) total += points[i] - points[first];
  return points[first] + total / (points.length / step);
}
