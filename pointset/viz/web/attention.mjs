/* Attention of one set: scores, weights on the simplex, and the maps that are shown. */
import { Matrix, product } from "./tensors.mjs";

/** A module whose fields are those of its description: arrays, matrices, other modules and plain values. */
export class Module {
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
export class Multihead extends Module {
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
export class DualMLP extends Module {
  forward(X, maps) {
    const A = this.logits.forward(X).transposed();
    softmax(A);
    if (maps) maps.push({ ...this.map, heads: 1, queries: A.rows, keys: A.columns, weights: A.data });
    return product(A, this.values.forward(X).transposed());
  }
}
