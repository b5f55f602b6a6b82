/* The attention maps of a model that runs in the page. */
import { Layer, MOST_CODE } from "../../../viz/web/maps.mjs";

const LOW = -12, HIGH = 12, MOST_CHOSEN = 16;
/** Colours go from 1/16 to 16 times uniform attention. The scale is fixed, so that pictures can be compared. */
const REACH = 4;
const TICKS = [[0, "1/16"], [0.25, "1/4"], [0.5, "1"], [0.75, "4"], [1, "16"]];
/** For each kind of map: its meaning, the name of a row, and the caption of a shape with the colours of this map. */
const KINDS = {
  reads: ["what each inducing point reads", "inducing point", "what it reads"],
  writes: ["which points read each inducing point back", "inducing point"],
  pools: ["what each seed pools", "seed", "what it pools"],
  self: ["what the ringed points read", "point"],
  selects: ["from which points max pooling takes its features", "maximum", "points that max pooling selects"],
};

/** One attention {layer, kind, points_are, heads, queries, keys, weights} for a cloud with `points` points. */
export class LiveLayer extends Layer {
  constructor(map, points) {
    const own = map.points_are === "queries", rows = own ? map.keys : map.queries;
    const chosen = Array.from({ length: map.kind === "self" ? Math.min(MOST_CHOSEN, rows) : rows }, (_, i) => i);
    const some = chosen.length < rows ? `, the first ${chosen.length} of ${rows} (in random order)` : "";
    const colour = map.kind === "selects" ? "number of features relative to the mean" : "attention weight relative to uniform attention";
    const [meaning, row_name] = KINDS[map.kind];
    super({
      name: map.layer, kind: map.kind, row_name, keys: [map.keys],
      meaning: `${meaning}${some}; colour: ${colour}; ring: exactly 0`,
      maps: Array.from({ length: map.heads }, (_, head) => chosen.map((row) => [0, head, row])).flat(),
      rows: chosen.length, marks: map.kind === "self", low: LOW, high: HIGH, reach: REACH,
      ticks: TICKS,
    }, points);
    Object.assign(this, { map, own });
  }

  /** The value of a map at a point: the weight times the number of keys. */
  value(index, point) {
    const { queries, keys, weights } = this.map, [, head, row] = this.maps[index];
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
  get entropy() {
    this.entropies ??= Array.from({ length: this.count }, (_, index) => {
      let total = 0, logs = 0;
      for (let point = 0; point < this.points; point++) {
        const value = this.value(index, point);
        total += value;
        if (value > 0) logs += value * Math.log(value);
      }
      return total > 0 && this.points > 1 ? (Math.log(total) - logs / total) / Math.log(this.points) : 1;
    });
    return this.entropies;
  }
}

/** The 16-bit code of a weight relative to uniform attention; only the weight 0 has code 0. */
export function codeOf(value) {
  if (!(value > 0)) return 0;
  const share = (Math.log2(value) - LOW) / (HIGH - LOW);
  return Math.max(1, Math.min(MOST_CODE, Math.round(MOST_CODE * share)));
}

/** The range of codes on the colour bar. */
export const SCALE = { low: LOW, high: HIGH, reach: REACH };
/** The map that colours the shape: the last of kind "pools", else "selects", else "reads"; undefined without one. */
function ownView(maps) {
  const last = (kind) => maps.filter((map) => map.points_are === "keys" && map.kind === kind).at(-1);
  return ["pools", "selects", "reads"].map(last).find(Boolean);
}

/** A caption for the colours of the shape. */
export function colourOf(maps) { return KINDS[ownView(maps)?.kind]?.[2] ?? "all points have equal weight"; }

/** The attention of each point in `ownView`, mean over heads and queries, scaled to mean 1 over the points. */
export function importance(maps, points) {
  const map = ownView(maps), values = new Float64Array(points).fill(map ? 0 : 1);
  map?.weights.forEach((weight, i) => { values[i % points] += (weight * points) / (map.heads * map.queries); });
  return values;
}
