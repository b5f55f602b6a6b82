/*
 * Runs trained models in evaluation mode, from their descriptions by `pointset.export.live.description`. `run` maps a
 * Matrix, the rows of one set, to a Matrix.
 */
import { fromBase64 } from "../../../viz/web/maps.mjs";
import { localFeatures } from "./local_features.mjs";
import { fromHalf, mapped, Matrix, product, sideBySide, sum } from "./tensors.mjs";

/**
 * Apply a module {kind, ...fields}, or several in turn. If `maps` is an array, each attention is added to it:
 * {layer, kind, points_are, heads, queries, keys, weights}, with weights [heads * queries * keys].
 */
export function run(module, X, maps) {
  if (Array.isArray(module)) return module.reduce((rows, next) => run(next, rows, maps), X);
  return FORWARD[module.kind](module, X, maps);
}

/** The rows that max pooling selects, as a map (`critical_points` in Python); null if the pool has no max pooling. */
export function selected(pool, Z) {
  if (pool.kind === "JoinedPool") return pool.pools.map((own) => selected(own, Z)).find(Boolean) ?? null;
  if (pool.kind !== "MaxPool") return null;
  const weights = new Float64Array(Z.rows), most = largest(Z).data, taken = new Uint8Array(Z.columns);
  Z.each((x, i, j) => {
    if (x !== most[j] || taken[j]) return;
    taken[j] = 1;
    weights[i] += 1 / Z.columns;
  });
  return { layer: pool.layer, kind: "selects", points_are: "keys", heads: 1, queries: 1, keys: Z.rows, weights };
}

const relu = (x) => (x > 0 ? x : 0);

/** The modules by their kind in model descriptions: functions of the fields of the description and the rows X. */
const FORWARD = {
  Linear: ({ weight, bias }, X) => product(X, weight, bias),
  ReLU: (_, X) => mapped(X, relu),

  /** Appends the standardised local features of the points. */
  LocalFeatureInputs: ({ mean, deviation, constants }, X) => (
    sideBySide([X, mapped(localFeatures(X, constants), (x, j) => (
      Math.max(-constants.largest, Math.min(constants.largest, (x - mean[j]) / deviation[j]))
    ))])
  ),

  /** Concatenates the rows of a set to one row. */
  Flatten: (_, X) => X.flat(),

  Sequential: ({ modules }, X, maps) => run(modules, X, maps),

  /** Normalises each feature with its running mean and variance from training (arXiv 1502.03167). */
  BatchNorm: ({ weight, bias, running_mean: means, running_var: variances, eps }, X) => {
    const scale = weight.map((own, j) => own / Math.sqrt(variances[j] + eps));
    return mapped(X, (x, j) => (x - means[j]) * scale[j] + bias[j]);
  },

  /** SAB(X) = MAB(X, X). */
  SAB: ({ mab: block }, X, maps) => mab(block, X, X, maps),

  /** ISAB(X) = MAB(X, MAB(I, X)), I the inducing points. */
  ISAB: ({ inducing_points: I, reads, writes }, X, maps) => mab(writes, X, mab(reads, I, X, maps), maps),

  /** PMA(Z) = MAB(S, rFF(Z)), S the seeds. */
  PMA: ({ seeds, feed_forward: forward, mab: block }, Z, maps) => mab(block, seeds, run(forward, Z), maps),

  /** A^T V [k, e], with A = softmax over the rows of f(X) and V = g(X) (Fei et al., DuMLP-Pin, AAAI 2022). */
  DualMLP: ({ logits, values, map }, X, maps) => {
    const A = run(logits, X).transposed();
    softmax(A);
    if (maps) maps.push({ ...map, heads: 1, queries: A.rows, keys: A.columns, weights: A.data });
    return product(A, run(values, X).transposed());
  },

  /** Y = X + ReLU(N(X W + vec(S) U)), with S the summary computed by a DualMLP. */
  InteractionLayer: ({ reads, rows, summary, norm }, X, maps) => {
    const shared = run(summary, run(reads, X, maps).flat());
    return sum(X, mapped(run(norm, sum(run(rows, X), shared)), relu));
  },

  /** One statistic of each feature. */
  MaxPool: (pool, Z) => largest(Z),
  MeanPool: (pool, Z) => mapped(total(Z), (x) => x / Z.rows),
  SumPool: (pool, Z) => total(Z),

  /** PMA and the modules after it. */
  AttentionPool: ({ pma, sab, feed_forward: forward }, Z, maps) => run([pma, sab, forward].filter(Boolean), Z, maps),

  /** The concatenated outputs of several poolings of the same rows. */
  JoinedPool: ({ pools }, Z, maps) => sideBySide(pools.map((pool) => run(pool, Z, maps).flat())),
};

const largest = (X) => folded(X, (most, x) => (x > most ? x : most), -Infinity);
const total = (X) => folded(X, (sum, x) => sum + x, 0);

function folded(X, combine, start) {
  const row = new Float64Array(X.columns).fill(start);
  X.each((x, i, j) => { row[j] = combine(row[j], x); });
  return new Matrix(1, X.columns, row);
}

/** MAB(X, Y) of the Set Transformer (Lee et al., arXiv 1810.00825, section 3), as in the code that they released. */
function mab(fields, X, Y, maps) {
  const { multihead } = fields, Q = run([fields.norm_query, multihead.query], X);
  const H = run(fields.norm_attended, sum(Q, attend(multihead, Q, run(fields.norm_key, Y), maps)));
  return run(fields.norm_output, sum(H, run([fields.norm_hidden, fields.feed_forward], H)));
}

/**
 * concat_j(weights(score(Q_j, K_j)) V_j), see `Multihead` in Python: attention of projected queries Q [n, d] to
 * Y [m, _], before W^O: [n, d].
 */
function attend(multihead, Q, Y, maps) {
  const { heads } = multihead, n = Q.rows, width = Q.columns / heads, read = new Matrix(n, Q.columns);
  const A = byHeads(multihead, Q, run(multihead.key, Y)), turnedV = run(multihead.value, Y).transposed();
  weigh(multihead, A, n, maps);
  for (let j = 0; j < heads; j++)
    product(A.rowsFrom(j * n, n), turnedV.rowsFrom(j * width, width), null, read.columnsFrom(j * width, width));
  return read;
}

/** The logits [heads * n, m]: for each head, its scaled columns of Q [n, d] times its columns of K [m, d]. */
function byHeads({ heads, factor }, Q, K) {
  const n = Q.rows, width = Q.columns / heads, scaled = mapped(Q, (x) => x * factor), A = new Matrix(heads * n, K.rows);
  for (let j = 0, first = 0; j < heads; j++, first += width)
    product(scaled.columnsFrom(first, width), K.columnsFrom(first, width), null, A.rowsFrom(j * n, n));
  return A;
}

/** Turn the logits [heads * n, m] into weights, in place. */
function weigh({ heads, names, map }, logits, n, maps) {
  names.forEach((name, j) => WEIGHTS[name](logits.rowsFrom(j * n, n)));
  if (maps) maps.push({ ...map, heads, queries: n, keys: logits.columns, weights: logits.data });
}

/** Each row becomes non-negative and sums to 1. */
function softmax({ rows, columns, data, start, stride }) {
  for (let i = 0; i < rows; i++) {
    const first = start + i * stride, end = first + columns;
    let most = -Infinity, total = 0;
    for (let j = first; j < end; j++) if (data[j] > most) most = data[j];
    for (let j = first; j < end; j++) total += data[j] = Math.exp(data[j] - most);
    for (let j = first; j < end; j++) data[j] /= total;
  }
}

/** Each row becomes the nearest point of the probability simplex (Martins and Astudillo, ICML 2016). */
function sparsemax({ rows, columns, data, start, stride }) {
  for (let i = 0; i < rows; i++) {
    const first = start + i * stride, row = data.subarray(first, first + columns);
    let total = 0, threshold = -Infinity;
    Float64Array.from(row).sort().reverse().every((value, j) => {
      total += value;
      const lower = (total - 1) / (j + 1), isIn = value > lower;
      if (isIn) threshold = lower;
      return isIn;
    });
    row.forEach((value, j) => { row[j] = Math.max(0, value - threshold); });
  }
}

const WEIGHTS = { softmax, sparsemax };

export class Model {
  /** `description`: name, classes, inputs, normalize, the modules encoder, pool and head, arrays, weights (base 64). */
  constructor({ encoder, pool, head, arrays, weights, ...rest }) {
    const content = fromBase64(weights), decoded = arrays.map((array) => arrayOf(array, content));
    const inPlace = (_, value) => (value?.array === undefined ? value : decoded[value.array]);
    Object.assign(this, rest, JSON.parse(JSON.stringify({ encoder, pool, head }), inPlace));
  }

  /** The encoded rows [n, d] of points, an array [n * inputs]; for `maps`, see `run`. */
  encode(points, maps = null) {
    const rows = new Matrix(points.length / this.inputs, this.inputs, Float64Array.from(points));
    return run(this.encoder, rows, maps);
  }

  /** The logits of encoded rows, divided by the temperature. */
  decide(rows, maps = null) { return mapped(run([this.pool, this.head], rows, maps), (x) => x / this.temperature).data; }

  /** The logits of at least one point. */
  logits(points, maps = null) { return this.decide(this.encode(points, maps), maps); }

  /** The rows that max pooling selects, as a map; null if the model has no max pooling. */
  selected(rows) { return selected(this.pool, rows); }
}

/** One array: a Float64Array if it is a vector, else a Matrix. 32-bit numbers are copied, as they may be unaligned. */
function arrayOf({ start, shape, bits }, content) {
  const count = shape.reduce((product, size) => product * size, 1), columns = shape.at(-1);
  const numbers = bits === 16
    ? fromHalf(new Uint16Array(content, start, count))
    : Float64Array.from(new Float32Array(content.slice(start, start + 4 * count)));
  return shape.length < 2 ? numbers : new Matrix(count / columns, columns, numbers);
}
