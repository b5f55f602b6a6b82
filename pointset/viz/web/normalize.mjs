/* A cloud in the frame in which a model was trained: `pointset.normalize_points`. */

const NORMALIZATIONS = {
  none: () => ({ centre: [0, 0, 0], size: 1 }),
  "unit-sphere": (points) => {
    const centre = [0, 1, 2].map((axis) => mean(points, axis, 3));
    let most = 0;
    for (let i = 0; i < points.length; i += 3)
      most = Math.max(most, Math.hypot(points[i] - centre[0], points[i + 1] - centre[1], points[i + 2] - centre[2]));
    return { centre, size: most };
  },
  standardize: (points) => {
    const one = mean(points, 0, 1);
    let squares = 0;
    for (let i = 0; i < points.length; i++) squares += (points[i] - one) ** 2;
    return { centre: [one, one, one], size: Math.sqrt(squares / points.length) };
  },
};

/** Points [3 n] as the model wants them, a Float32Array; `how` is "unit-sphere", "standardize" or "none". */
export function normalizePoints(points, how) {
  const { centre, size } = NORMALIZATIONS[how](points), scale = size > 0 ? size : 1;
  return Float32Array.from(points, (number, i) => (number - centre[i % 3]) / scale);
}

function mean(points, first, step) {
  let total = 0;
  for (let i = first; i < points.length; i += step) total += points[i] - points[first];
  return points[first] + total / (points.length / step);
}
