/* Which maps are shown, their order and their layout. Pure functions, without access to the document. */
const HEAD = 24, LABEL = 18, GAP = 6;
const MOST_COLUMNS = 8, LARGEST = 340, FEW = 8;

/** Maps with at least this spread are treated as uniform. */
export const UNIFORM = 0.98;

export function isUniform(layer, index) { return layer.spread[index] >= UNIFORM; }

/**
 * Groups of maps {head, indices} for a choice {heads, order, hide}. There is one group for each head; if the order is
 * "sharpest", or if heads have only one map, there is a single group whose `head` is null.
 */
export function chosenMaps(layer, { heads, order, hide }) {
  const all = Array.from({ length: layer.count }, (_, index) => index);
  const kept = all.filter((index) => heads.has(layer.head(index)) && !(hide && isUniform(layer, index)));
  if (order === "sharpest") kept.sort((a, b) => layer.spread[a] - layer.spread[b] || a - b);
  if (order === "sharpest" || layer.rows.length === 1) return [{ head: null, indices: kept }];
  const groups = layer.heads.map((head) => ({ head, indices: kept.filter((index) => layer.head(index) === head) }));
  return groups.filter((group) => group.indices.length);
}

/** Positions of panels and of group headings, in pixels; `width` is at least 1, `aspect` is height / width. */
export function arranged(groups, width, aspect) {
  const widest = Math.max(1, ...groups.map((group) => group.indices.length));
  const least = widest <= FEW ? 150 : 104;
  const columns = Math.max(1, Math.min(MOST_COLUMNS, widest, Math.floor((width + GAP) / (least + GAP))));
  const size = Math.floor(Math.min((width - GAP * (columns - 1)) / columns, LARGEST));
  const tall = Math.round(size * aspect);
  const panels = [], headings = [];
  let top = 0;
  for (const { head, indices } of groups) {
    if (head !== null) {
      headings.push({ head, top });
      top += HEAD;
    }
    for (const [place, index] of indices.entries()) {
      const line = Math.floor(place / columns);
      const [left, above] = [(place % columns) * (size + GAP), top + line * (tall + LABEL + GAP)];
      panels.push({ index, left, top: above + LABEL, width: size, height: tall });
    }
    top += Math.ceil(indices.length / columns) * (tall + LABEL + GAP) + GAP;
  }
  return { panels, headings, columns, height: Math.max(top, 1), label: LABEL };
}
