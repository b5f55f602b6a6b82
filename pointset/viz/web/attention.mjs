/* Multihead attention for one set. */
import { WEIGHTS } from "./simplex.mjs";
import { Matrix, product } from "./tensors.mjs";

/** concat_j(weights(score(Q_j, K_j)) V_j) W^O; see `Multihead` in Python. */
export class Multihead {
  constructor(described, { array, matrix, part }) {
    const { heads, names, factor, temperatures, bilinear, query, key, value, output, map } = described;
    Object.assign(this, { heads, names, map });
    [this.query, this.key, this.value, this.output] = [query, key, value, output].map((one) => one && part(one));
    this.dim = this.query.weight.rows;
    this.width = this.dim / heads;
    const logs = temperatures === null ? new Float64Array(heads) : array(temperatures);
    this.factors = Array.from(logs, (log) => factor * Math.exp(-log));
    this.turnedKey = this.key.weight.transposed();
    this.bilinear = bilinear === null ? null : byHead(matrix(bilinear), heads);
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
    if (this.bilinear) product(own, this.bilinear[j], null, scored);
    const from = this.bilinear ? scored : own;
    for (let i = 0; i < Q.rows; i++)
      for (let p = 0; p < this.width; p++)
        scored.data[i * this.width + p] = from.data[from.start + i * from.stride + p] * factor;
    return scored;
  }

  #weigh(logits, n, maps) {
    for (let j = 0; j < this.heads; j++) WEIGHTS[this.names[j % this.names.length]](logits.rowsFrom(j * n, n));
    if (maps) maps.push({ ...this.map, heads: this.heads, queries: n, keys: logits.columns, weights: logits.data });
  }
}

function byHead(weight, heads) {
  const rows = weight.rows / heads;
  return Array.from({ length: heads }, (_, j) => weight.rowsFrom(j * rows, rows));
}
