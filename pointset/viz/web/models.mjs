/* Builds a trained model from its description by `pointset.export.javascript`. */
import { fromBase64 } from "./maps.mjs";
import { run, selected } from "./modules.mjs";
import { fromHalf, Matrix } from "./tensors.mjs";

export class Model {
  /** `description`: name, classes, inputs, normalize, the modules encoder, pool and head, arrays, weights (base 64). */
  constructor({ encoder, pool, head, arrays, weights, ...rest }) {
    const content = fromBase64(weights), decoded = arrays.map((array) => arrayOf(array, content));
    Object.assign(this, rest, withArrays({ encoder, pool, head }, decoded));
  }

  /** The encoded rows [n, d] of points, an array [n * inputs]; for `maps`, see `run`. */
  encode(points, maps = null) {
    const rows = new Matrix(points.length / this.inputs, this.inputs, Float64Array.from(points));
    return run(this.encoder, rows, maps);
  }

  /** The logits of encoded rows. */
  decide(rows, maps = null) { return run([this.pool, this.head], rows, maps).data; }

  /** The logits of at least one point. */
  logits(points, maps = null) { return this.decide(this.encode(points, maps), maps); }

  /** The rows that a max pooling selects, as a map; null if the model has no max pooling. */
  selected(rows) { return selected(this.pool, rows); }
}

/** A description with its arrays in place. */
function withArrays(description, arrays) {
  if (Array.isArray(description)) return description.map((item) => withArrays(item, arrays));
  if (description === null || typeof description !== "object") return description;
  if ("array" in description) return arrays[description.array];
  return Object.fromEntries(Object.entries(description).map(([name, value]) => [name, withArrays(value, arrays)]));
}

/** One array: a Float64Array if it is a vector, else a Matrix. Numbers of 32 bits may be unaligned: they are copied. */
function arrayOf({ start, shape, bits }, content) {
  const count = shape.reduce((product, size) => product * size, 1), columns = shape.at(-1);
  const numbers = bits === 16
    ? fromHalf(new Uint16Array(content, start, count))
    : Float64Array.from(new Float32Array(content.slice(start, start + 4 * count)));
  return shape.length < 2 ? numbers : new Matrix(count / columns, columns, numbers);
}
