/* Matrices, and their products on one core. */
import { hasSimd, simdProduct } from "./simd.mjs";

/** Number of multiply-adds from which a product is faster in WebAssembly, although its matrices must be copied. */
const WORTH = 2 ** 15;

/**
 * A matrix [rows, columns] in a Float64Array, or in a view of a larger one: row i begins at `start + i * stride`.
 * (Numbers of a Float32Array would be converted in each product.)
 */
export class Matrix {
  constructor(rows, columns, data = new Float64Array(rows * columns), start = 0, stride = columns) {
    Object.assign(this, { rows, columns, data, start, stride });
  }

  /** A view of `count` columns from `first`. */
  columnsFrom(first, count) { return new Matrix(this.rows, count, this.data, this.start + first, this.stride); }

  /** A view of `count` rows from `first`. */
  rowsFrom(first, count) {
    return new Matrix(count, this.columns, this.data, this.start + first * this.stride, this.stride);
  }

  /** A view of all rows as one row; the rows must be contiguous. */
  flat() { return new Matrix(1, this.rows * this.columns, this.data, this.start); }

  transposed() {
    const { rows, columns, data, start, stride } = this, turned = new Matrix(columns, rows), out = turned.data;
    for (let i = 0; i < rows; i++)
      for (let j = 0, from = start + i * stride, to = i; j < columns; j++, to += rows) out[to] = data[from + j];
    return turned;
  }

  /** Call visit(x, i, j) with each number, row and column, row by row. */
  each(visit) {
    for (let i = 0; i < this.rows; i++)
      for (let j = 0, from = this.start + i * this.stride; j < this.columns; j++) visit(this.data[from + j], i, j);
  }
}

/** A new matrix with f(x, j) of each number x of column j. */
export function mapped(X, f) {
  const Y = new Matrix(X.rows, X.columns), out = Y.data;
  for (let i = 0, to = 0; i < X.rows; i++)
    for (let j = 0, from = X.start + i * X.stride; j < X.columns; j++) out[to++] = f(X.data[from + j], j);
  return Y;
}

/** X + Y; if Y has one row, it is added to each row of X. */
export function sum(X, Y) {
  const Z = new Matrix(X.rows, X.columns), out = Z.data, step = Y.rows === 1 ? 0 : Y.stride;
  for (let i = 0, to = 0; i < X.rows; i++) {
    const a = X.start + i * X.stride, b = Y.start + i * step;
    for (let j = 0; j < X.columns; j++) out[to++] = X.data[a + j] + Y.data[b + j];
  }
  return Z;
}

/** Concatenate the columns of matrices with the same number of rows. */
export function sideBySide(matrices) {
  const width = matrices.reduce((total, X) => total + X.columns, 0), joined = new Matrix(matrices[0].rows, width);
  let first = 0;
  for (const { rows, columns, data, start, stride } of matrices) {
    for (let i = 0; i < rows; i++)
      joined.data.set(data.subarray(start + i * stride, start + i * stride + columns), i * width + first);
    first += columns;
  }
  return joined;
}

/** A B^T [n, m] for A [n, k] and B [m, k], plus a bias [m] on each row, written into C. */
export function product(A, B, bias = null, C = new Matrix(A.rows, B.rows)) {
  if (hasSimd && Math.min(A.rows, B.rows) >= 4 && A.rows * B.rows * A.columns >= WORTH) {
    simdProduct(A, B, bias, C);
    return C;
  }
  const a = A.data, b = B.data, k = A.columns;
  for (let i = 0; i < A.rows; i++)
    for (let j = 0; j < B.rows; j++) {
      let total = 0;
      for (let p = 0, x = A.start + i * A.stride, y = B.start + j * B.stride; p < k; p++) total += a[x + p] * b[y + p];
      C.data[C.start + i * C.stride + j] = bias ? total + bias[j] : total;
    }
  return C;
}

/** Convert finite 16-bit floating-point numbers (IEEE 754 binary16) to a Float64Array. */
export function fromHalf(halves) {
  // Move sign, exponent and fraction to their positions in 32 bits; the factor corrects for the other exponent bias.
  const bits = new Int32Array(halves.length), out = new Float64Array(halves.length);
  for (let i = 0; i < bits.length; i++) bits[i] = ((halves[i] & 0x8000) << 16) | ((halves[i] & 0x7fff) << 13);
  const scaled = new Float32Array(bits.buffer);
  for (let i = 0; i < out.length; i++) out[i] = scaled[i] * 2 ** 112;
  return out;
}
