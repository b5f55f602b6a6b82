/* The maps of one layer. */

/** Decode base 64 to an ArrayBuffer. */
export function fromBase64(text) {
  return (Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))).buffer;
}

export const MOST_CODE = 65535;

/**
 * One 16-bit code for each map and point. Code 0 is a weight of exactly 0; the other codes are equal steps of
 * log2(weight * keys) from `low` to `high`, where weight * keys = 1 is uniform attention. `maps` has the model, the
 * head and the row of each map, `rows` is the number of rows, `models` has the names of the models that are compared.
 */
export class Layer {
  constructor(content, points, models = [""]) {
    const { low, high, reach } = content;
    Object.assign(this, content, { points, models, scale: { low, high, reach } });
  }

  get codes() { return (this.decoded ??= new Uint16Array(fromBase64(this.values))); }
  get count() { return this.maps.length; }
  get heads() { return [...new Set(this.maps.map(([, head]) => head))].sort((a, b) => a - b); }
  model(index) { return this.maps[index][0]; }
  head(index) { return this.maps[index][1]; }
  row(index) { return this.maps[index][2]; }

  /** What the renderer draws of a map; `mark` is the point whose map it is, if the queries are points, else -1. */
  panel(index) { return { index, at: index * this.points, mark: this.marks ? this.row(index) : -1 }; }

  /** Whether heads are named: a map of the only head is named by its row. */
  get namesHeads() { return this.heads.length > 1; }

  rowNameOf(index) {
    const head = `head ${this.head(index)}`, row = `${this.row_name} ${this.row(index)}`;
    if (!this.namesHeads) return row;
    return this.rows > 1 ? `${head}, ${row}` : head;
  }

  nameOf(index) {
    const name = this.rowNameOf(index);
    return this.models.length > 1 ? `${this.models[this.model(index)]}: ${name}` : name;
  }

  noteOf(index) { return `entropy ${this.entropy[index].toFixed(2)}`; }

  code(index, point) { return this.codes[index * this.points + point]; }

  /** The attention of a point, as a multiple of uniform attention. */
  relative(index, point) {
    return 2 ** (this.low + ((this.high - this.low) * this.code(index, point)) / MOST_CODE);
  }

  describe(index, point) {
    const own = this.code(index, point);
    if (own === 0) return `point ${point}: weight exactly 0`;
    const above = this.codes.subarray(index * this.points, (index + 1) * this.points).filter((code) => code > own);
    const value = this.relative(index, point), rank = above.length + 1;
    const less = own === 1 ? "at most " : "";
    const [times, weight] = [value, value / this.keys[this.model(index)]].map((number) => number.toPrecision(3));
    return `point ${point}: ${less}${times} times uniform\nweight ${less}${weight}, rank ${rank} of ${this.points}`;
  }
}
