/* Builds a trained model from its description by `pointset.export.javascript`. */
import { fromBase64 } from "./maps.mjs";
import { MODULES } from "./modules.mjs";
import { fromHalf, Matrix } from "./tensors.mjs";

export class Model {
  /** `description`: name, classes, inputs, normalize, the modules encoder, pool and head, arrays, weights (base 64). */
  constructor({ encoder, pool, head, arrays, weights, ...rest }) {
    Object.assign(this, rest);
    const content = fromBase64(weights), decoded = arrays.map((array) => arrayOf(array, content));
    [this.encoder, this.pool, this.head] = [encoder, pool, head].map((tree) => built(tree, decoded));
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

/** A description with its modules and arrays in place; other objects, such as names of maps, stay as they are. */
function built(description, arrays) {
  if (Array.isArray(description)) return description.map((item) => built(item, arrays));
  if (description === null || typeof description !== "object") return description;
  if ("array" in description) return arrays[description.array];
  const fields = {};
  for (const [name, value] of Object.entries(description)) fields[name] = built(value, arrays);
  return Object.hasOwn(MODULES, fields.kind) ? new MODULES[fields.kind](fields) : fields;
}

/** One array: a Float64Array if it is a vector, else a Matrix. Numbers of 32 bits may be unaligned: they are copied. */
function arrayOf({ start, shape, bits }, content) {
  const count = shape.reduce((product, size) => product * size, 1), columns = shape.at(-1);
  const numbers = bits === 16
    ? fromHalf(new Uint16Array(content, start, count))
    : Float64Array.from(new Float32Array(content.slice(start, start + 4 * count)));
  return shape.length < 2 ? numbers : new Matrix(count / columns, columns, numbers);
}
