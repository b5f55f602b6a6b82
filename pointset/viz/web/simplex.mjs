/* Functions from scores to weights, in place: each row of a matrix becomes non-negative and sums to 1. */

export function softmax({ rows, columns, data, start, stride }) {
  for (let i = 0; i < rows; i++) {
    const first = start + i * stride, end = first + columns;
    let most = -Infinity, total = 0;
    for (let j = first; j < end; j++) if (data[j] > most) most = data[j];
    for (let j = first; j < end; j++) total += data[j] = Math.exp(data[j] - most);
    for (let j = first; j < end; j++) data[j] /= total;
  }
}

/** The nearest point of the simplex, max(z - tau, 0) (arXiv 1602.02068); finds tau by Newton's method from below. */
export function sparsemax({ rows, columns, data, start, stride }) {
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

/** The functions by their names in model descriptions. */
export const WEIGHTS = { softmax, sparsemax };
