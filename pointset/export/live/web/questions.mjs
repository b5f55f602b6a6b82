/* Manipulates the points of a shape, and runs a model on them. Pure computation, without access to the document. */
import { randomFrom, shuffled } from "./shapes.mjs";

const NORMALIZATIONS = {
  none: () => ({ centre: [0, 0, 0], size: 1 }),
  "unit-sphere": (points) => ({ centre: middle(points), size: farthest(points, middle(points)) }),
  standardize: (points) => {
    const centre = Array(3).fill(mean(points, 0, 1));
    return { centre, size: deviation(points, centre) };
  },
  "center-standardize": (points) => ({ centre: middle(points), size: deviation(points, middle(points)) }),
};

/** The normalised points, a Float32Array [3 n]; `how` is a key of `NORMALIZATIONS`. */
export function normalizePoints(points, how) {
  const { centre, size } = NORMALIZATIONS[how](points), scale = size > 0 ? size : 1;
  return Float32Array.from(points, (number, i) => (number - centre[i % 3]) / scale);
}

/** The distance of the farthest point from a position. */
function farthest(points, [x, y, z]) {
  let most = 0;
  for (let i = 0; i < points.length; i += 3)
    most = Math.max(most, Math.hypot(points[i] - x, points[i + 1] - y, points[i + 2] - z));
  return most;
}

const middle = (points) => [0, 1, 2].map((axis) => mean(points, axis, 3));

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

/** A shape and its manipulations: base points, removed points, and random numbers that are drawn once. */
export class Question {
  /** `points`: Float64Array [3 n]. */
  constructor(points, seed = 0) {
    const random = randomFrom(seed);
    Object.assign(this, { base: points, count: points.length / 3 });
    [this.gone, this.rank] = [new Uint8Array(this.count), new Int32Array(this.count)];
    shuffled(this.count, random).forEach((point, rank) => { this.rank[point] = rank; });
    this.noise = Float64Array.from({ length: 3 * this.count }, () => normal(random));
    this.strewn = Float64Array.from({ length: 3 * this.count }, random);
    this.frame = frameOf(points);
    this.how = { turn: 0, tilt: 0, jitter: 0, drop: 0, background: 0 };
  }

  /** True if any manipulation is in effect. */
  get isPosed() { return Object.values(this.how).some(Boolean) || this.gone.some(Boolean); }

  isGone(point) { return this.gone[point] > 0 || this.rank[point] < Math.round(this.how.drop * this.count); }

  /** Indices of the first `count` points that are not removed; points after the base points are background. */
  left(count = this.count) { return Array.from({ length: count }, (_, i) => i).filter((i) => !this.isGone(i)); }

  /** All base points, turned and jittered, followed by the background points: Float64Array. */
  posed() {
    const { turn, tilt, jitter, background } = this.how, { middle, radius, low, high } = this.frame;
    const turned = turning(turn, tilt), extra = Math.round(background * this.count);
    const points = new Float64Array(3 * (this.count + extra));
    for (let i = 0; i < this.count; i++) {
      const local = [0, 1, 2].map((k) => this.base[3 * i + k] - middle[k] + jitter * radius * this.noise[3 * i + k]);
      turned.forEach(([x, y, z], k) => { points[3 * i + k] = middle[k] + x * local[0] + y * local[1] + z * local[2]; });
    }
    for (let i = 3 * this.count; i < points.length; i++)
      points[i] = low[i % 3] + (high[i % 3] - low[i % 3]) * this.strewn[i - 3 * this.count];
    return points;
  }

  /** Indices of the points that the model gets: the base points that are not removed, and the background points. */
  seen(posed) { return this.left(posed.length / 3); }
}

/** The logits of a model for the posed points with indices `seen`; its maps are added to the array `maps`, if given. */
export function ask(model, posed, seen, maps = null) {
  const chosen = new Float64Array(3 * seen.length);
  seen.forEach((from, to) => {
    const [x, y, z] = posed.subarray(3 * from, 3 * from + 3);  // with Z up, as all shapes of a page
    chosen.set(model.up === "y" ? [x, z, -y] : [x, y, z], 3 * to);
  });
  const rows = model.encode(normalizePoints(chosen, model.normalize), maps), logits = model.decide(rows, maps);
  const selected = maps && model.selected(rows);
  if (selected) maps.push(selected);
  return logits;
}

/** Probabilities of logits. */
export function probabilities(logits) {
  const most = Math.max(...logits), powers = Array.from(logits, (logit) => Math.exp(logit - most));
  const total = powers.reduce((sum, power) => sum + power, 0);
  return powers.map((power) => power / total);
}

/** The indices that sort values in descending order. */
export function descending(values) {
  return Array.from(values, (_, i) => i).sort((a, b) => values[b] - values[a] || a - b);
}

const normal = (random) => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());

/** The bounding box, its centre, and the distance of the farthest point from the centre. */
function frameOf(points) {
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (let i = 0; i < points.length; i++) {
    low[i % 3] = Math.min(low[i % 3], points[i]);
    high[i % 3] = Math.max(high[i % 3], points[i]);
  }
  const middle = low.map((least, k) => (least + high[k]) / 2);
  return { low, high, middle, radius: farthest(points, middle) || 1 };
}

/** The rows of the rotation matrix of a turn about the upward axis, then a tilt about x, in degrees. */
function turning(turn, tilt) {
  const [a, b] = [turn, tilt].map((degrees) => (degrees * Math.PI) / 180);
  const [sa, ca, sb, cb] = [Math.sin(a), Math.cos(a), Math.sin(b), Math.cos(b)];
  return [[ca, -sa, 0], [cb * sa, cb * ca, -sb], [sb * sa, sb * ca, cb]];
}
