/* Matrices and matrix products. */

/**
 * A matrix [rows, columns] in a Float64Array, or a view of a larger matrix: row i begins at `start + i * stride`.
 * (A Float32Array is slower, since each product would convert its numbers.)
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

  /** Call visit(x, i, j) for each number x in row i and column j, row by row. */
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

/**
 * A B^T [n, m] for A [n, k] and B [m, k], plus a bias [m] on each row, written into C. With tiles of 2 x 4 numbers, it
 * is twice as fast as with one number at a time. At the edges, a tile computes the last row or column again.
 */
export function product(A, B, bias = null, C = new Matrix(A.rows, B.rows)) {
  const a = A.data, b = B.data, c = C.data, k = A.columns, m = B.rows;
  for (let i = 0; i < A.rows; i += 2)
    for (let j = 0; j < m; j += 4) {
      const rows = [i, Math.min(i + 1, A.rows - 1)], columns = [0, 1, 2, 3].map((t) => Math.min(j + t, m - 1));
      const [x0, x1] = rows.map((row) => A.start + row * A.stride);
      const [y0, y1, y2, y3] = columns.map((column) => B.start + column * B.stride);
      let s0 = 0, s1 = 0, s2 = 0, s3 = 0, t0 = 0, t1 = 0, t2 = 0, t3 = 0;
      for (let p = 0; p < k; p++) {
        const s = a[x0 + p], t = a[x1 + p], b0 = b[y0 + p], b1 = b[y1 + p], b2 = b[y2 + p], b3 = b[y3 + p];
        s0 += s * b0; s1 += s * b1; s2 += s * b2; s3 += s * b3;
        t0 += t * b0; t1 += t * b1; t2 += t * b2; t3 += t * b3;
      }
      const totals = [s0, s1, s2, s3, t0, t1, t2, t3];
      for (let t = 0; t < 8; t++) {
        const row = rows[t >> 2], column = columns[t & 3];
        c[C.start + row * C.stride + column] = totals[t] + (bias ? bias[column] : 0);
      }
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
