/* The blocks of the Set Transformer (Lee et al., arXiv 1810.00825, section 3), in both published forms. */
import { STATISTICS } from "./layers.mjs";
import { Matrix, product, sum } from "./tensors.mjs";

const NORMS = ["norm_query", "norm_key", "norm_hidden", "norm_attended", "norm_output"];
const MODULES = ["multihead", "feed_forward", ...NORMS];

/** MAB(X, Y): X reads from Y, then a feed-forward network is applied to each row; see `MAB` in Python. */
export class MAB {
  constructor(described, { part }) {
    this.paper = described.form === "paper";
    for (const name of MODULES) this[name] = part(described[name]);
  }

  forward(X, Y, maps) {
    const keys = this.norm_key.forward(Y), Q = this.multihead.query.forward(this.norm_query.forward(X));
    const read = this.multihead.attend(Q, keys, maps);
    const residual = this.paper ? X : Q, attended = this.paper ? this.multihead.output.forward(read) : read;
    const H = this.norm_attended.forward(sum(residual, attended));
    return this.norm_output.forward(sum(H, this.feed_forward.forward(this.norm_hidden.forward(H))));
  }
}

/** SAB(X) = MAB(X, X). */
export class SAB {
  constructor({ mab }, { part }) { this.mab = part(mab); }

  forward(X, maps) { return this.mab.forward(X, X, maps); }
}

/** ISAB(X) = MAB(X, MAB(I, X)), I the inducing points. */
export class ISAB {
  constructor({ inducing_points, reads, writes }, { matrix, part }) {
    this.inducing_points = matrix(inducing_points);
    this.reads = part(reads);
    this.writes = part(writes);
  }

  forward(X, maps) { return this.writes.forward(X, this.reads.forward(this.inducing_points, X, maps), maps); }
}

/** PMA(Z) = MAB(S, rFF(Z)), S the seeds. */
export class PMA {
  constructor({ seeds, pooled_seeds, feed_forward, mab }, { matrix, part }) {
    this.seeds = seeds === null ? null : matrix(seeds);
    this.pooled_seeds = pooled_seeds && part(pooled_seeds);
    this.feed_forward = part(feed_forward);
    this.mab = part(mab);
  }

  forward(Z, maps) {
    const S = this.seeds ?? this.pooled_seeds.forward(Z);
    return this.mab.forward(S, this.feed_forward.forward(Z), maps);
  }
}

/** Seeds that are linear functions of statistics of the set, one statistic per seed. */
export class PooledSeeds {
  constructor({ statistics, weight, bias }, { array, matrix }) {
    this.statistics = statistics;
    this.weight = matrix(weight);
    this.bias = array(bias);
  }

  forward(Z) {
    const d = Z.columns, seeds = new Matrix(this.statistics.length, d);
    for (const [t, name] of this.statistics.entries()) {
      const bias = this.bias.subarray(t * d, (t + 1) * d);
      product(STATISTICS[name](Z), this.weight.rowsFrom(t * d, d), bias, seeds.rowsFrom(t, 1));
    }
    return seeds;
  }
}
