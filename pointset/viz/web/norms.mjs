/* Normalisations of the rows of one set, in evaluation mode. */
import { Matrix } from "./tensors.mjs";

export class NoNorm {
  forward(X) { return X; }
}

/** Normalises each row over its features (arXiv 1607.06450). */
export class LayerNorm {
  constructor({ weight, bias, eps }, { array }) {
    this.weight = array(weight);
    this.bias = array(bias);
    this.eps = eps;
  }

  forward(X) {
    const Y = new Matrix(X.rows, X.columns);
    for (let i = 0; i < X.rows; i++)
      normalise(X, Y, { row: i, rows: i + 1, first: 0, last: X.columns }, this);
    return Y;
  }
}

/** Normalises each group of features over all rows of the set (arXiv 2206.11925, section 4). */
export class SetNorm {
  constructor({ weight, bias, eps, groups }, { array }) {
    this.weight = array(weight);
    this.bias = array(bias);
    this.eps = eps;
    this.groups = groups;
  }

  forward(X) {
    const Y = new Matrix(X.rows, X.columns), width = X.columns / this.groups;
    for (let first = 0; first < X.columns; first += width)
      normalise(X, Y, { row: 0, rows: X.rows, first, last: first + width }, this);
    return Y;
  }
}

/** Normalises each feature with its running mean and variance from training (arXiv 1502.03167). */
export class BatchNorm {
  constructor({ weight, bias, mean, variance, eps }, { array }) {
    const [own, shift, means, variances] = [weight, bias, mean, variance].map(array);
    this.scale = own.map((w, j) => w / Math.sqrt(variances[j] + eps));
    this.shift = Float64Array.from(shift, (b, j) => b - means[j] * this.scale[j]);
  }

  forward(X) {
    const Y = new Matrix(X.rows, X.columns);
    for (let i = 0, to = 0; i < X.rows; i++)
      for (let j = 0, from = X.start + i * X.stride; j < X.columns; j++)
        Y.data[to++] = X.data[from + j] * this.scale[j] + this.shift[j];
    return Y;
  }
}

/** Normalise a block of X by its mean and variance, and scale and shift each feature; the result goes to Y. */
function normalise(X, Y, { row, rows, first, last }, { weight, bias, eps }) {
  const count = (rows - row) * (last - first);
  let mean = 0, variance = 0;
  for (let i = row; i < rows; i++)
    for (let j = first; j < last; j++) mean += X.data[X.start + i * X.stride + j];
  mean /= count;
  for (let i = row; i < rows; i++)
    for (let j = first; j < last; j++) variance += (X.data[X.start + i * X.stride + j] - mean) ** 2;
  const scale = 1 / Math.sqrt(variance / count + eps);
  for (let i = row; i < rows; i++)
    for (let j = first; j < last; j++)
      Y.data[i * Y.stride + j] = (X.data[X.start + i * X.stride + j] - mean) * scale * weight[j] + bias[j];
}
