/* Points of meshes and clouds, drawn by a seed. */

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
