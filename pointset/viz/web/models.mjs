/* Builds a trained model from its description by `pointset.export.javascript`. */
import { Multihead } from "./attention.mjs";
import { ISAB, MAB, PMA, PooledSeeds, SAB } from "./blocks.mjs";
import { DualMLP, InteractionLayer, NormedLayers, Stem } from "./dual_mlp.mjs";
import { ConnectedLayers, EquivariantLayer, Flatten, Linear, ReLU, Sequential, Tanh } from "./layers.mjs";
import { bytes } from "./maps.mjs";
import { BatchNorm, LayerNorm, NoNorm, SetNorm } from "./norms.mjs";
import { AttentionPool, JoinedPool, StatisticPool } from "./pooling.mjs";
import { fromHalf, Matrix } from "./tensors.mjs";

const PARTS = {
  AttentionPool, BatchNorm, ConnectedLayers, DualMLP, EquivariantLayer, Flatten, InteractionLayer, ISAB, JoinedPool,
  LayerNorm, Linear, MAB, Multihead, NoNorm, NormedLayers, PMA, PooledSeeds, ReLU, SAB, Sequential, SetNorm,
  StatisticPool, Stem, Tanh,
};

export class Model {
  /** `described`: name, classes, inputs, normalize, the modules encoder, pool and head, arrays, weights (base 64). */
  constructor(described) {
    Object.assign(this, { name: described.name, classes: described.classes, normalize: described.normalize });
    Object.assign(this, { inputs: described.inputs, temperature: described.temperature, up: described.up });
    const weights = bytes(described.weights);
    const kit = {
      array: (number) => arrayOf(described.arrays[number], weights),
      matrix: (number) => {
        const { shape } = described.arrays[number], columns = shape.at(-1), data = kit.array(number);
        return new Matrix(data.length / columns, columns, data);
      },
      part: (one) => new PARTS[one.kind](one, kit),
      parts: (several) => several.map(kit.part),
    };
    this.encoder = kit.parts(described.encoder);
    this.pool = kit.part(described.pool);
    this.head = kit.part(described.head);
  }

  /**
   * The encoded rows [n, d] of points, an array [n * inputs]. If `maps` is an array, each attention is added to it:
   * {layer, kind, points_are, heads, queries, keys, weights}, with weights [heads * queries * keys].
   */
  encode(points, maps = null) {
    const rows = new Matrix(points.length / this.inputs, this.inputs, Float64Array.from(points));
    return this.encoder.reduce((X, module) => module.forward(X, maps), rows);
  }

  /** The logits of at least one point; arguments as in `encode`. */
  logits(points, maps = null) { return this.decide(this.encode(points, maps), maps); }

  /** The rows that a max pooling selects, as a map; null if the model has no max pooling. */
  selected(rows) { return this.pool.selected?.(rows) ?? null; }

  /** The logits of encoded rows. */
  decide(rows, maps = null) { return this.head.forward(this.pool.forward(rows, maps), maps).data; }
}

/** The numbers of one array. Those of 32 bits may be unaligned, so they are copied. */
function arrayOf({ start, shape, bits }, weights) {
  const count = shape.reduce((product, size) => product * size, 1);
  if (bits === 16) return fromHalf(new Uint16Array(weights, start, count));
  return Float64Array.from(new Float32Array(weights.slice(start, start + 4 * count)));
}
