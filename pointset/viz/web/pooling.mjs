/* Poolings: from the rows of a set to a few rows. */
import { STATISTICS } from "./layers.mjs";
import { sideBySide } from "./tensors.mjs";

/** Concatenated statistics of each feature. */
export class StatisticPool {
  constructor({ statistics, layer }) { Object.assign(this, { statistics, layer }); }

  forward(Z) { return sideBySide(this.statistics.map((name) => STATISTICS[name](Z))); }

  /** For each row, the share of features for which the maximum selects it (`critical_points` in Python), or null. */
  selected(Z) {
    if (!this.statistics.includes("max")) return null;
    const weights = new Float64Array(Z.rows);
    for (let j = 0; j < Z.columns; j++) {
      let best = 0;
      for (let i = 1; i < Z.rows; i++) if (Z.data[Z.start + i * Z.stride + j] > Z.data[Z.start + best * Z.stride + j]) best = i;
      weights[best] += 1 / Z.columns;
    }
    return { layer: this.layer, kind: "selects", points_are: "keys", heads: 1, queries: 1, keys: Z.rows, weights };
  }
}

/** PMA and the modules after it. */
export class AttentionPool {
  constructor({ pma, then }, { part, parts }) {
    this.pma = part(pma);
    this.then = parts(then);
  }

  forward(Z, maps) {
    return this.then.reduce((pooled, module) => module.forward(pooled, maps), this.pma.forward(Z, maps));
  }
}

/** The concatenated outputs of several poolings of the same rows. */
export class JoinedPool {
  constructor({ pools }, { parts }) { this.pools = parts(pools); }

  selected(Z) { return this.pools.map((pool) => pool.selected?.(Z)).find(Boolean) ?? null; }

  forward(Z, maps) { return sideBySide(this.pools.map((pool) => pool.forward(Z, maps).flat())); }
}
