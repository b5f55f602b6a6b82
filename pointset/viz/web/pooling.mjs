/* From the rows of a set to a few. */
import { STATISTICS } from "./layers.mjs";
import { sideBySide } from "./tensors.mjs";

/** Statistics of each feature, side by side. */
export class StatisticPool {
  constructor({ statistics }) { this.statistics = statistics; }

  forward(Z) { return sideBySide(this.statistics.map((name) => STATISTICS[name](Z))); }
}

/** PMA, and what follows it. */
export class AttentionPool {
  constructor({ pma, then }, { part, parts }) {
    this.pma = part(pma);
    this.then = parts(then);
  }

  forward(Z, maps) {
    return this.then.reduce((pooled, module) => module.forward(pooled, maps), this.pma.forward(Z, maps));
  }
}

/** What several poolings make of the same rows, side by side. */
export class JoinedPool {
  constructor({ pools }, { parts }) { this.pools = parts(pools); }

  forward(Z, maps) { return sideBySide(this.pools.map((pool) => pool.forward(Z, maps).flat())); }
}
