/* The maps of one layer, computed in Python or by a model in the page. */

/** Decode base 64 to an ArrayBuffer. */
export function fromBase64(text) {
  return (Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))).buffer;
}

const MOST_CODE = 65535;

/**
 * One 16-bit code for each map and point. Code 0 is a weight of exactly 0; the other codes are equal steps of
 * log2(weight * keys) from `low` to `high`, where weight * keys = 1 is uniform attention.
 */
export class Layer {
  constructor(content, points) {
    const { low, high, reach } = content;
    Object.assign(this, content, { points, scale: { low, high, reach } });
  }

  get codes() { return (this.decoded ??= new Uint16Array(fromBase64(this.values))); }
  get count() { return this.heads.length * this.rows.length; }
  head(index) { return this.heads[Math.floor(index / this.rows.length)]; }
  row(index) { return this.rows[index % this.rows.length]; }

  /** The index of the point whose map it is, if the queries are points; else -1. */
  mark(index) { return this.marks[index % this.rows.length]; }

  /** Whether heads are named: a map of the only head is named by its row. */
  get namesHeads() { return this.heads.length > 1; }

  nameOf(index) {
    const head = `head ${this.head(index)}`, row = `${this.row_name} ${this.row(index)}`;
    if (!this.namesHeads) return row;
    return this.rows.length > 1 ? `${head}, ${row}` : head;
  }

  noteOf(index) { return `spread ${this.spread[index].toFixed(2)}`; }

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
    const [times, weight] = [value, value / this.keys].map((number) => number.toPrecision(3));
    return `point ${point}: ${less}${times} times uniform\nweight ${less}${weight}, rank ${rank} of ${this.points}`;
  }
}

const LOW = -12, HIGH = 12, MOST_CHOSEN = 16;
/** Colours go from 1 / 16 of uniform attention to 16 times. The scale is fixed, so that answers can be compared. */
const REACH = 4;
const TICKS = [[0, "1/16"], [0.25, "1/4"], [0.5, "1"], [0.75, "4"], [1, "16"]];
/** For each kind of map: its meaning, the name of a row, and what it says of the shape's colours. */
const KINDS = {
  reads: ["what each inducing point reads", "inducing point", "what it reads"],
  writes: ["which points read each inducing point back", "inducing point"],
  pools: ["what each seed pools", "seed", "what it pools"],
  self: ["what the ringed points read", "point"],
  selects: ["from which points the maximum takes its features", "maximum", "where its maximum comes from"],
};

/** One attention {layer, kind, points_are, heads, queries, keys, weights} for a cloud with `points` points. */
export class LiveLayer extends Layer {
  constructor(map, points) {
    const own = map.points_are === "queries", rows = own ? map.keys : map.queries;
    const chosen = Array.from({ length: map.kind === "self" ? Math.min(MOST_CHOSEN, rows) : rows }, (_, i) => i);
    const some = chosen.length < rows ? `, the first ${chosen.length} of ${rows}, which lie in random order` : "";
    const colour = map.kind === "selects" ? "features, times their mean" : "attention, times its uniform value";
    const [meaning, row_name] = KINDS[map.kind];
    super({
      name: map.layer, kind: map.kind, row_name, keys: map.keys,
      meaning: `${meaning}${some}; colour: ${colour}; ring: exactly 0`,
      heads: Array.from({ length: map.heads }, (_, i) => i), rows: chosen,
      marks: chosen.map((row) => (map.kind === "self" ? row : -1)),
      differences: [], low: LOW, high: HIGH, reach: REACH, ticks: TICKS,
    }, points);
    Object.assign(this, { map, own });
  }

  /** The value of a map at a point: its weight times the number of keys. */
  value(index, point) {
    const { queries, keys, weights } = this.map, rows = this.rows.length;
    const head = Math.floor(index / rows), row = this.rows[index % rows];
    const [query, key] = this.own ? [point, row] : [row, point];
    return keys * weights[(head * queries + query) * keys + key];
  }

  get codes() {
    if (this.decoded) return this.decoded;
    this.decoded = new Uint16Array(this.count * this.points);
    for (let index = 0, to = 0; index < this.count; index++)
      for (let point = 0; point < this.points; point++) this.decoded[to++] = codeOf(this.value(index, point));
    return this.decoded;
  }

  /** The normalised entropy of each map over the points: 1 is uniform. */
  get spread() {
    this.spreads ??= Array.from({ length: this.count }, (_, index) => {
      let total = 0, logs = 0;
      for (let point = 0; point < this.points; point++) {
        const value = this.value(index, point);
        total += value;
        if (value > 0) logs += value * Math.log(value);
      }
      return total > 0 && this.points > 1 ? (Math.log(total) - logs / total) / Math.log(this.points) : 1;
    });
    return this.spreads;
  }
}

/** The 16-bit code of a value, which is 1 for uniform attention; only the value 0 has code 0. */
export function codeOf(value) {
  if (!(value > 0)) return 0;
  const share = (Math.log2(value) - LOW) / (HIGH - LOW);
  return Math.max(1, Math.min(MOST_CODE, Math.round(MOST_CODE * share)));
}

/** The range of codes on the colour bar. */
export const SCALE = { low: LOW, high: HIGH, reach: REACH };
/** The map that colours the shape: the last that pools, else selects, else reads points; undefined if there is none. */
function ownView(maps) {
  const last = (kind) => maps.filter((map) => map.points_are === "keys" && map.kind === kind).at(-1);
  return ["pools", "selects", "reads"].map(last).find(Boolean);
}

/** A description of the colours of the shape. */
export function colourOf(maps) { return KINDS[ownView(maps)?.kind]?.[2] ?? "all points alike"; }

/** The attention of each point in `ownView`, mean over heads and queries, scaled to mean 1 over the points. */
export function importance(maps, points) {
  const map = ownView(maps), values = new Float64Array(points).fill(map ? 0 : 1);
  map?.weights.forEach((weight, i) => { values[i % points] += (weight * points) / (map.heads * map.queries); });
  return values;
}
