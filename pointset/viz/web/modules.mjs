/* The modules of the Python models in evaluation mode: `forward(X, maps)` goes from the rows of one set to rows. */
import { mapped, Matrix, product, sideBySide, sum } from "./tensors.mjs";

/** A module whose fields are those of its description: arrays, matrices, other modules and plain values. */
class Module {
  constructor(fields) { Object.assign(this, fields); }
}

/** Functions from scores to weights, in place: each row of a matrix becomes non-negative and sums to 1. */
const WEIGHTS = { softmax, sparsemax };

function softmax({ rows, columns, data, start, stride }) {
  for (let i = 0; i < rows; i++) {
    const first = start + i * stride, end = first + columns;
    let most = -Infinity, total = 0;
    for (let j = first; j < end; j++) if (data[j] > most) most = data[j];
    for (let j = first; j < end; j++) total += data[j] = Math.exp(data[j] - most);
    for (let j = first; j < end; j++) data[j] /= total;
  }
}

/** The nearest point of the simplex, max(z - tau, 0) (arXiv 1602.02068); finds tau by Newton's method from below. */
function sparsemax({ rows, columns, data, start, stride }) {
  for (let i = 0; i < rows; i++) {
    const first = start + i * stride, end = first + columns;
    let most = -Infinity, before = -1, size = 0;
    for (let j = first; j < end; j++) if (data[j] > most) most = data[j];
    let tau = -1;
    while (size !== before) {
      let above = 0;
      [before, size] = [size, 0];
      for (let j = first; j < end; j++) if (data[j] - most > tau) { above += data[j] - most; size++; }
      tau = (above - 1) / size;
    }
    for (let j = first; j < end; j++) data[j] = Math.max(data[j] - most - tau, 0);
  }
}

/** concat_j(weights(score(Q_j, K_j)) V_j) W^O; see `Multihead` in Python. */
class Multihead extends Module {
  constructor(fields) {
    super(fields);
    this.dim = this.query.weight.rows;
    this.width = this.dim / this.heads;
    const logs = this.temperatures ?? new Float64Array(this.heads);
    this.factors = Array.from(logs, (log) => this.factor * Math.exp(-log));
    this.turnedKey = this.key.weight.transposed();
  }

  /** Attention of projected queries Q [n, d] to Y [m, _], before W^O: [n, d]; in the order with fewer operations. */
  attend(Q, Y, maps) {
    const [n, m, d, k] = [Q.rows, Y.rows, this.dim, Y.columns];
    const explicit = 2 * m * k * d + 2 * n * m * d, absorbed = 2 * n * d * k + 2 * this.heads * n * m * k;
    return absorbed < explicit ? this.#absorbed(Q, Y, maps) : this.#explicit(Q, Y, maps);
  }

  /** The formula itself. */
  #explicit(Q, Y, maps) {
    const { heads, width } = this;
    const K = this.key.forward(Y), turnedV = this.value.forward(Y).transposed();
    const A = new Matrix(heads * Q.rows, Y.rows), read = new Matrix(Q.rows, this.dim);
    for (let j = 0; j < heads; j++)
      product(this.#scored(Q, j), K.columnsFrom(j * width, width), null, A.rowsFrom(j * Q.rows, Q.rows));
    this.#weigh(A, Q.rows, maps);
    for (let j = 0; j < heads; j++) {
      const V = turnedV.rowsFrom(j * width, width);
      product(A.rowsFrom(j * Q.rows, Q.rows), V, null, read.columnsFrom(j * width, width));
    }
    return read;
  }

  /** Q_j (Y W^K_j)^T = (Q_j W^K_j^T) Y^T and A_j (Y W^V_j) = (A_j Y) W^V_j: Y is never projected. */
  #absorbed(Q, Y, maps) {
    const { heads, width } = this, n = Q.rows;
    const queries = new Matrix(heads * n, Y.columns), read = new Matrix(n, this.dim);
    for (let j = 0; j < heads; j++)
      product(this.#scored(Q, j), this.turnedKey.columnsFrom(j * width, width), null, queries.rowsFrom(j * n, n));
    const A = product(queries, Y);
    this.#weigh(A, n, maps);
    const rows = product(A, Y.transposed());
    for (let j = 0; j < heads; j++) {
      const weight = this.value.weight.rowsFrom(j * width, width);
      const bias = this.value.bias.subarray(j * width, (j + 1) * width);
      product(rows.rowsFrom(j * n, n), weight, bias, read.columnsFrom(j * width, width));
    }
    return read;
  }

  /** Queries of a head, transformed so that their products with the keys are its logits. */
  #scored(Q, j) {
    const own = Q.columnsFrom(j * this.width, this.width), factor = this.factors[j];
    const scored = new Matrix(Q.rows, this.width);
    if (this.bilinear) product(own, this.bilinear.rowsFrom(j * this.width, this.width), null, scored);
    const from = this.bilinear ? scored : own;
    from.each((x, i, j) => { scored.data[i * this.width + j] = x * factor; });
    return scored;
  }

  #weigh(logits, n, maps) {
    for (let j = 0; j < this.heads; j++) WEIGHTS[this.names[j % this.names.length]](logits.rowsFrom(j * n, n));
    if (maps) maps.push({ ...this.map, heads: this.heads, queries: n, keys: logits.columns, weights: logits.data });
  }
}

/** A^T V [k, e], with A = softmax over the rows of f(X) and V = g(X) (Fei et al., DuMLP-Pin, AAAI 2022). */
class DualMLP extends Module {
  forward(X, maps) {
    const A = this.logits.forward(X).transposed();
    softmax(A);
    if (maps) maps.push({ ...this.map, heads: 1, queries: A.rows, keys: A.columns, weights: A.data });
    return product(A, this.values.forward(X).transposed());
  }
}

const relu = (x) => (x > 0 ? x : 0);
const applied = (modules, X, maps) => modules.reduce((rows, module) => module.forward(rows, maps), X);

class Linear extends Module {
  forward(X) { return product(X, this.weight, this.bias); }
}

class ReLU extends Module {
  forward(X) { return mapped(X, relu); }
}

class Tanh extends Module {
  forward(X) { return mapped(X, Math.tanh); }
}

/** Concatenates the rows of a set to one row. */
class Flatten extends Module {
  forward(X) { return X.flat(); }
}

class Sequential extends Module {
  forward(X, maps) { return applied(this.modules, X, maps); }
}

/** Normalises each row over its features (arXiv 1607.06450). */
class LayerNorm extends Module {
  forward(X) {
    const Y = new Matrix(X.rows, X.columns);
    for (let i = 0; i < X.rows; i++) this.normalise(X.rowsFrom(i, 1), Y.rowsFrom(i, 1), 0);
    return Y;
  }

  /** Normalise a block of numbers by their mean and variance; scale and shift each feature, counted from `first`. */
  normalise(X, Y, first) {
    const count = X.rows * X.columns;
    let mean = 0, variance = 0;
    X.each((x) => { mean += x / count; });
    X.each((x) => { variance += (x - mean) ** 2 / count; });
    const scale = 1 / Math.sqrt(variance + this.eps), { weight, bias } = this;
    X.each((x, i, j) => {
      Y.data[Y.start + i * Y.stride + j] = (x - mean) * scale * weight[first + j] + bias[first + j];
    });
  }
}

/** Normalises each group of features over all rows of the set (arXiv 2206.11925, section 4). */
class SetNorm extends LayerNorm {
  forward(X) {
    const Y = new Matrix(X.rows, X.columns), width = X.columns / this.groups;
    for (let first = 0; first < X.columns; first += width)
      this.normalise(X.columnsFrom(first, width), Y.columnsFrom(first, width), first);
    return Y;
  }
}

/** Normalises each feature with its running mean and variance from training (arXiv 1502.03167). */
class BatchNorm extends Module {
  forward(X) {
    const { weight, bias, running_mean: means, running_var: variances, eps } = this;
    const scale = weight.map((own, j) => own / Math.sqrt(variances[j] + eps));
    return mapped(X, (x, j) => (x - means[j]) * scale[j] + bias[j]);
  }
}

/** Statistics by name: functions from X [n, d] to one row [1, d]. */
const STATISTICS = {
  max: (X) => folded(X, (most, x) => (x > most ? x : most), -Infinity),
  min: (X) => folded(X, (least, x) => (x < least ? x : least), Infinity),
  sum: (X) => folded(X, (total, x) => total + x, 0),
  mean: (X) => mapped(STATISTICS.sum(X), (x) => x / X.rows),
  deviation: (X) => {
    const mean = STATISTICS.mean(X).data, squares = mapped(X, (x, j) => (x - mean[j]) ** 2);
    return mapped(STATISTICS.mean(squares), (x) => Math.sqrt(x + 1e-6));
  },
};

function folded(X, combine, start) {
  const row = new Float64Array(X.columns).fill(start);
  X.each((x, i, j) => { row[j] = combine(row[j], x); });
  return new Matrix(1, X.columns, row);
}

/** y_i = tanh(N(Gamma(x_i - s))), with s a statistic of the set (Zaheer et al., arXiv 1703.06114, appendix H). */
class EquivariantLayer extends Module {
  forward(X) {
    const centre = mapped(STATISTICS[this.statistic](X), (x) => -x);
    return mapped(this.norm.forward(this.gamma.forward(sum(X, centre))), Math.tanh);
  }
}

/** Layers with the coordinates as further inputs, or whose outputs are joined; see `ConnectedLayers` in Python. */
class ConnectedLayers extends Module {
  forward(X, maps) {
    const outputs = [];
    let rows = X;
    for (const [number, layer] of this.layers.entries()) {
      if (number && this.coordinates.length) rows = sum(rows, this.coordinates[number - 1].forward(X));
      rows = applied(layer, rows, maps);
      outputs.push(rows);
    }
    return this.join.length ? applied(this.join, sideBySide(outputs), maps) : rows;
  }
}

/** MAB(X, Y) of the Set Transformer (Lee et al., arXiv 1810.00825, section 3), in both published forms. */
class MAB extends Module {
  forward(X, Y, maps) {
    const keys = this.norm_key.forward(Y), Q = this.multihead.query.forward(this.norm_query.forward(X));
    const read = this.multihead.attend(Q, keys, maps), paper = this.form === "paper";
    const attended = paper ? this.multihead.output.forward(read) : read;
    const H = this.norm_attended.forward(sum(paper ? X : Q, attended));
    return this.norm_output.forward(sum(H, this.feed_forward.forward(this.norm_hidden.forward(H))));
  }
}

/** SAB(X) = MAB(X, X). */
class SAB extends Module {
  forward(X, maps) { return this.mab.forward(X, X, maps); }
}

/** ISAB(X) = MAB(X, MAB(I, X)), I the inducing points. */
class ISAB extends Module {
  forward(X, maps) { return this.writes.forward(X, this.reads.forward(this.inducing_points, X, maps), maps); }
}

/** PMA(Z) = MAB(S, rFF(Z)), S the seeds. */
class PMA extends Module {
  forward(Z, maps) {
    const S = this.seeds ?? this.pooled_seeds.forward(Z);
    return this.mab.forward(S, this.feed_forward.forward(Z), maps);
  }
}

/** Seeds that are linear functions of statistics of the set, one statistic per seed. */
class PooledSeeds extends Module {
  forward(Z) {
    const d = Z.columns, seeds = new Matrix(this.statistics.length, d);
    for (const [t, name] of this.statistics.entries()) {
      const bias = this.bias.subarray(t * d, (t + 1) * d);
      product(STATISTICS[name](Z), this.weight.rowsFrom(t * d, d), bias, seeds.rowsFrom(t, 1));
    }
    return seeds;
  }
}

/** Concatenated statistics of each feature. */
class StatisticPool extends Module {
  forward(Z) { return sideBySide(this.statistics.map((name) => STATISTICS[name](Z))); }

  /** For each row, the share of features for which the maximum selects it (`critical_points` in Python), or null. */
  selected(Z) {
    if (!this.statistics.includes("max")) return null;
    const weights = new Float64Array(Z.rows), most = STATISTICS.max(Z).data, taken = new Uint8Array(Z.columns);
    Z.each((x, i, j) => {
      if (x !== most[j] || taken[j]) return;
      taken[j] = 1;
      weights[i] += 1 / Z.columns;
    });
    return { layer: this.layer, kind: "selects", points_are: "keys", heads: 1, queries: 1, keys: Z.rows, weights };
  }
}

/** PMA and the modules after it. */
class AttentionPool extends Module {
  forward(Z, maps) {
    return applied([this.pma, this.sab, this.feed_forward].filter(Boolean), Z, maps);
  }
}

/** The concatenated outputs of several poolings of the same rows. */
class JoinedPool extends Module {
  selected(Z) { return this.pools.map((pool) => pool.selected?.(Z)).find(Boolean) ?? null; }
  forward(Z, maps) { return sideBySide(this.pools.map((pool) => pool.forward(Z, maps).flat())); }
}

/** Y = X + ReLU(N(X W + vec(S) U)), with S the summary computed by a DualMLP. */
class InteractionLayer extends Module {
  forward(X, maps) {
    const shared = this.summary.forward(this.reads.forward(X, maps).flat());
    return sum(X, mapped(this.norm.forward(sum(this.rows.forward(X), shared)), relu));
  }
}

/** The classes by their names in model descriptions. */
export const MODULES = {
  AttentionPool, BatchNorm, ConnectedLayers, DualMLP, EquivariantLayer, Flatten, InteractionLayer, ISAB, JoinedPool,
  LayerNorm, Linear, MAB, Multihead, PMA, PooledSeeds, ReLU, SAB, Sequential, SetNorm, StatisticPool, Tanh,
};
