/* Matrices, and their products on one core. */
import { hasSimd, simdProduct } from "./simd.mjs";

/** Number of multiply-adds from which a product is faster in WebAssembly, although its matrices must be copied. */
const WORTH = 2 ** 15;

/**
 * A matrix [rows, columns] in a Float64Array, or in a part of one: row i begins at `start + i * stride`. (Numbers of a
 * Float32Array would be converted in each product.)
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
    const { rows, columns, data, start, stride } = this;
    const turned = new Matrix(columns, rows), out = turned.data;
    for (let i = 0; i < rows; i++)
      for (let j = 0, from = start + i * stride, to = i; j < columns; j++, to += rows) out[to] = data[from + j];
    return turned;
  }
}

/** A new matrix with f(x) of each number. */
export function mapped(X, f) {
  const Y = new Matrix(X.rows, X.columns), out = Y.data;
  for (let i = 0, to = 0; i < X.rows; i++)
    for (let j = 0, from = X.start + i * X.stride; j < X.columns; j++) out[to++] = f(X.data[from + j]);
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
export function sideBySide(parts) {
  const width = parts.reduce((total, part) => total + part.columns, 0), joined = new Matrix(parts[0].rows, width);
  let first = 0;
  for (const { rows, columns, data, start, stride } of parts) {
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
  if (A.rows < 4 || B.rows < 4) fewRows(A, B, C);
  else blocks(A.data, A.start, A.stride, B.data, B.start, B.stride, A.rows, B.rows, A.columns, C);
  if (bias)
    for (let i = 0; i < C.rows; i++)
      for (let j = 0, to = C.start + i * C.stride; j < C.columns; j++) C.data[to + j] += bias[j];
  return C;
}

function fewRows(A, B, C) {
  const a = A.data, b = B.data, k = A.columns;
  for (let i = 0; i < A.rows; i++)
    for (let j = 0; j < B.rows; j++) {
      let total = 0;
      for (let p = 0, x = A.start + i * A.stride, y = B.start + j * B.stride; p < k; p++) total += a[x + p] * b[y + p];
      C.data[C.start + i * C.stride + j] = total;
    }
}

/** Products of 4 x 4 blocks, so that each number read is used in four products; the last blocks overlap. */
function blocks(a, aStart, aStride, b, bStart, bStride, n, m, k, { data: c, start: cStart, stride: cStride }) {
  for (let row = 0; row < n; row += 4) {
    const i = row + 4 > n ? n - 4 : row;
    const a0 = aStart + i * aStride, a1 = a0 + aStride, a2 = a1 + aStride, a3 = a2 + aStride;
    for (let column = 0; column < m; column += 4) {
      const j = column + 4 > m ? m - 4 : column;
      const b0 = bStart + j * bStride, b1 = b0 + bStride, b2 = b1 + bStride, b3 = b2 + bStride;
      let c00 = 0, c01 = 0, c02 = 0, c03 = 0, c10 = 0, c11 = 0, c12 = 0, c13 = 0;
      let c20 = 0, c21 = 0, c22 = 0, c23 = 0, c30 = 0, c31 = 0, c32 = 0, c33 = 0;
      for (let p = 0; p < k; p++) {
        const x0 = a[a0 + p], x1 = a[a1 + p], x2 = a[a2 + p], x3 = a[a3 + p];
        const y0 = b[b0 + p], y1 = b[b1 + p], y2 = b[b2 + p], y3 = b[b3 + p];
        c00 += x0 * y0; c01 += x0 * y1; c02 += x0 * y2; c03 += x0 * y3;
        c10 += x1 * y0; c11 += x1 * y1; c12 += x1 * y2; c13 += x1 * y3;
        c20 += x2 * y0; c21 += x2 * y1; c22 += x2 * y2; c23 += x2 * y3;
        c30 += x3 * y0; c31 += x3 * y1; c32 += x3 * y2; c33 += x3 * y3;
      }
      const to = cStart + i * cStride + j, to1 = to + cStride, to2 = to1 + cStride, to3 = to2 + cStride;
      c[to] = c00; c[to + 1] = c01; c[to + 2] = c02; c[to + 3] = c03;
      c[to1] = c10; c[to1 + 1] = c11; c[to1 + 2] = c12; c[to1 + 3] = c13;
      c[to2] = c20; c[to2 + 1] = c21; c[to2 + 2] = c22; c[to2 + 3] = c23;
      c[to3] = c30; c[to3 + 1] = c31; c[to3 + 2] = c32; c[to3 + 3] = c33;
    }
  }
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
