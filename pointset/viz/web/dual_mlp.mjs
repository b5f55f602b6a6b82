/* Dual-MLP attention (Fei et al., DuMLP-Pin, AAAI 2022). */
import { softmax } from "./simplex.mjs";
import { mapped, product, sum } from "./tensors.mjs";

const relu = (x) => (x > 0 ? x : 0);

/** Linear layers, each followed by a norm, with ReLUs between them. */
export class NormedLayers {
  constructor({ linear, norm }, { parts }) {
    this.linear = parts(linear);
    this.norm = parts(norm);
  }

  forward(X) {
    let rows = X;
    for (const [number, linear] of this.linear.entries())
      rows = this.norm[number].forward(linear.forward(number ? mapped(rows, relu) : rows));
    return rows;
  }
}

/** ReLU(N(X W)). */
export class Stem extends NormedLayers {
  forward(X) { return mapped(super.forward(X), relu); }
}

/** A^T V [k, e], with A = softmax over the rows of f(X) and V = g(X). */
export class DualMLP {
  constructor({ logits, values, map }, { part }) {
    this.logits = part(logits);
    this.values = part(values);
    this.map = map;
  }

  forward(X, maps) {
    const A = this.logits.forward(X).transposed();
    softmax(A);
    if (maps) maps.push({ ...this.map, heads: 1, queries: A.rows, keys: A.columns, weights: A.data });
    return product(A, this.values.forward(X).transposed());
  }
}

/** Y = X + ReLU(N(X W + vec(S) U)), with S the summary computed by a DualMLP. */
export class InteractionLayer {
  constructor({ reads, rows, summary, norm }, { part }) {
    this.reads = part(reads);
    this.rows = part(rows);
    this.summary = part(summary);
    this.norm = part(norm);
  }

  forward(X, maps) {
    const shared = this.summary.forward(this.reads.forward(X, maps).flat());
    return sum(X, mapped(this.norm.forward(sum(this.rows.forward(X), shared)), relu));
  }
}
