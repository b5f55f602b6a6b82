/* From scores to weights: each row of a matrix becomes weights of at least 0 that sum to 1, in place. */

export function softmax({ rows, columns, data, start, stride }) {
  for (let i = 0; i < rows; i++) {
    const first = start + i * stride, end = first + columns;
    let most = -Infinity, total = 0;
    for (let j = first; j < end; j++) if (data[j] > most) most = data[j];
    for (let j = first; j < end; j++) total += data[j] = Math.exp(data[j] - most);
    for (let j = first; j < end; j++) data[j] /= total;
  }
}

/** The nearest point of the simplex, max(z - tau, 0) (arXiv 1602.02068); tau by Newton's method from below. */
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

/** By the names that models know them by. */
export const WEIGHTS = { softmax, sparsemax };
