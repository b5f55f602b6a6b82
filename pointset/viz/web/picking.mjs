/* Finds the panel and the point under the pointer. */
import { radiusIn } from "./camera.mjs";

export function panelAt(panels, x, y) {
  return panels.find((p) => x >= p.left && x < p.left + p.width && y >= p.top && y < p.top + p.height);
}

/** A function from the index of a point to its position in a panel: [x, y, nearness to the viewer]. */
export function placesIn(panel, { positions, camera, reach }) {
  const radius = radiusIn(panel.width, panel.height, reach);
  const [x, y] = [panel.left + panel.width / 2, panel.top + panel.height / 2];
  const project = camera.projection();
  return (i) => {
    const [right, up, near] = project([0, 1, 2].map((k) => positions[3 * i + k] / 32767));
    return [x + right * radius, y - up * radius, near];
  };
}

/** The index of the point at a position of a panel, or -1; points in front and attended points are preferred. */
export function pointAt(panel, x, y, view, attended) {
  const places = placesIn(panel, view);
  let best = -1, least = Math.max(7, panel.width / 30) ** 2;
  for (let i = 0; 3 * i < view.positions.length; i++) {
    const [right, down, near] = places(i);
    const score = (right - x) ** 2 + (down - y) ** 2 - 4 * near - (attended(i) ? 8 : 0);
    if (score < least) [best, least] = [i, score];
  }
  return best;
}
