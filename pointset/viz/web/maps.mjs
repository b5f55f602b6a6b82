/* The maps of one layer as integer codes, written by pointset.viz.page. */

/** Decode base 64 to an ArrayBuffer. */
export function bytes(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text).buffer;
  const letters = atob(text), found = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) found[i] = letters.charCodeAt(i);
  return found.buffer;
}

/**
 * One code for each map and point. Code 0 is a weight of exactly 0; the other codes are equal steps of
 * log2(weight * keys) from `low` to `high`, where weight * keys = 1 is uniform attention.
 */
export class Layer {
  constructor(content, points, bits) {
    Object.assign(this, content);
    this.points = points;
    this.most = 2 ** bits - 1;
    this.Codes = bits === 16 ? Uint16Array : Uint8Array;
    this.scale = { low: content.low, high: content.high, reach: content.reach };
  }

  get codes() { return (this.decoded ??= new this.Codes(bytes(this.values))); }

  get count() { return this.heads.length * this.rows.length; }

  head(index) { return this.heads[Math.floor(index / this.rows.length)]; }

  row(index) { return this.rows[index % this.rows.length]; }

  /** The index of the point whose map it is, if the queries are points; else -1. */
  mark(index) { return this.marks[index % this.rows.length]; }

  nameOf(index) {
    const head = `head ${this.head(index)}`;
    return this.rows.length > 1 ? `${head}, ${this.row_name} ${this.row(index)}` : head;
  }

  code(index, point) { return this.codes[index * this.points + point]; }

  /** The attention of a point, as a multiple of uniform attention. */
  relative(index, point) {
    return 2 ** (this.low + ((this.high - this.low) * this.code(index, point)) / this.most);
  }

  describe(index, point) {
    const own = this.code(index, point);
    if (own === 0) return `point ${point}: weight exactly 0`;
    let rank = 1;
    for (let i = 0; i < this.points; i++) if (this.code(index, i) > own) rank++;
    const value = this.relative(index, point);
    const less = own === 1 ? "at most " : "";
    const [times, weight] = [value, value / this.keys].map((number) => number.toPrecision(3));
    return `point ${point}: ${less}${times} times uniform\nweight ${less}${weight}, rank ${rank} of ${this.points}`;
  }
}
