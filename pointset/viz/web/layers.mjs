/* Row-wise layers, and layers whose rows interact only through one vector. All are called as layer.forward(X, maps). */
import { mapped, Matrix, product, sideBySide, sum } from "./tensors.mjs";

/** X W^T + b. */
export class Linear {
  constructor({ weight, bias }, { array, matrix }) {
    this.weight = matrix(weight);
    this.bias = bias === null ? null : array(bias);
  }

  forward(X) { return product(X, this.weight, this.bias); }
}

export class ReLU {
  forward(X) { return mapped(X, (x) => (x > 0 ? x : 0)); }
}

export class Tanh {
  forward(X) { return mapped(X, Math.tanh); }
}

/** Concatenates the rows of a set to one row. */
export class Flatten {
  forward(X) { return X.flat(); }
}

export class Sequential {
  constructor({ modules }, { parts }) { this.modules = parts(modules); }

  forward(X, maps) { return this.modules.reduce((rows, module) => module.forward(rows, maps), X); }
}

/** y_i = tanh(N(Gamma(x_i - s))), with s a statistic of the set (Zaheer et al., arXiv 1703.06114, appendix H). */
export class EquivariantLayer {
  constructor({ statistic, gamma, norm }, { part }) {
    this.statistic = statistic;
    this.gamma = part(gamma);
    this.norm = part(norm);
  }

  forward(X) {
    const centre = mapped(STATISTICS[this.statistic](X), (x) => -x);
    return mapped(this.norm.forward(this.gamma.forward(sum(X, centre))), Math.tanh);
  }
}

/** Layers with the coordinates as further inputs, or whose outputs are joined; see `ConnectedLayers` in Python. */
export class ConnectedLayers {
  constructor({ layers, coordinates, join }, { part, parts }) {
    this.layers = layers.map(parts);
    this.coordinates = parts(coordinates);
    this.join = join.length ? parts(join) : null;
  }

  forward(X, maps) {
    const outputs = [];
    let rows = X;
    for (const [number, layer] of this.layers.entries()) {
      if (number && this.coordinates.length) rows = sum(rows, this.coordinates[number - 1].forward(X));
      for (const module of layer) rows = module.forward(rows, maps);
      outputs.push(rows);
    }
    return this.join ? this.join.reduce((joined, module) => module.forward(joined, maps), sideBySide(outputs)) : rows;
  }
}

/** Statistics by name: functions from X [n, d] to one row [1, d]. */
export const STATISTICS = {
  max: (X) => folded(X, (most, x) => (x > most ? x : most)),
  min: (X) => folded(X, (least, x) => (x < least ? x : least)),
  sum: (X) => mapped(sums(X, (x) => x), (x) => x),
  mean: (X) => mapped(sums(X, (x) => x), (x) => x / X.rows),
  deviation: (X) => {
    const mean = STATISTICS.mean(X).data;
    return mapped(sums(X, (x, j) => (x - mean[j]) ** 2), (x) => Math.sqrt(x / X.rows + 1e-6));
  },
};

function folded(X, choose) {
  const out = X.data.slice(X.start, X.start + X.columns);
  for (let i = 1; i < X.rows; i++)
    for (let j = 0, from = X.start + i * X.stride; j < X.columns; j++) out[j] = choose(out[j], X.data[from + j]);
  return new Matrix(1, X.columns, out);
}

function sums(X, f) {
  const out = new Float64Array(X.columns);
  for (let i = 0; i < X.rows; i++)
    for (let j = 0, from = X.start + i * X.stride; j < X.columns; j++) out[j] += f(X.data[from + j], j);
  return new Matrix(1, X.columns, out);
}
