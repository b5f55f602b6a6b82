/* A turntable camera, equal to pointset.viz.Camera in Python; points under the pointer; gestures that turn it. */

const MOST_ZOOM = 12, LEAST_ZOOM = 0.5;

export class Camera {
  constructor({ azimuth, elevation, distance }) {
    this.home = { azimuth, elevation, zoom: 1 };
    this.distance = distance;
    this.reset();
  }

  reset() { Object.assign(this, this.home); }

  /** Turn by degrees: the near side of the cloud moves to the right, and down. */
  turn(right, down) {
    this.azimuth -= right;
    this.elevation = Math.max(-90, Math.min(90, this.elevation + down));
  }

  magnify(factor) { this.zoom = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, this.zoom * factor)); }

  /** The directions to the right, up and towards the viewer, as rows; z is up. */
  axes() {
    const [a, e] = [this.azimuth, this.elevation].map((degrees) => (degrees * Math.PI) / 180);
    const [sa, ca, se, ce] = [Math.sin(a), Math.cos(a), Math.sin(e), Math.cos(e)];
    return [[-sa, ca, 0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]];
  }

  /** A function from a point to its position on screen: right and up in radii of the cloud, and towards the viewer. */
  projection() {
    const [right, up, near] = this.axes().map(([x, y, z]) => (p) => x * p[0] + y * p[1] + z * p[2]);
    return (point) => {
      const nearness = (this.zoom * this.distance) / (this.distance - near(point));
      return [right(point) * nearness, up(point) * nearness, near(point)];
    };
  }
}

/** The extent [sideways, up] of points (Int16Array, in radii times 32,767) under all turns about z, in radii. */
export function reachOf(positions, { home, distance }) {
  let side = 0.05, up = 0.05;
  const tilt = (home.elevation * Math.PI) / 180, [sin, cos] = [Math.sin(tilt), Math.cos(tilt)];
  for (let i = 0; i < positions.length; i += 3) {
    const flat = Math.hypot(positions[i], positions[i + 1]) / 32767, high = positions[i + 2] / 32767;
    side = Math.max(side, (flat * distance) / (distance - high * sin));
    for (const near of [flat, -flat])
      up = Math.max(up, Math.abs((high * cos - near * sin) * distance) / (distance - near * cos - high * sin));
  }
  return [side, up];
}

/** The radius in pixels at which a cloud with extent `reach` (see `reachOf`) fits a box. */
export function radiusIn(width, height, reach) {
  return (0.95 / 2) * Math.min(width / reach[0], height / reach[1]);
}

export function panelAt(panels, x, y) {
  return panels.find((p) => x >= p.left && x < p.left + p.width && y >= p.top && y < p.top + p.height);
}

/** A function from the index of a point to its position in a panel: [x, y, nearness to the viewer]; see CloudCanvas. */
export function positionsIn(panel, camera, { positions, reach }) {
  const radius = radiusIn(panel.width, panel.height, reach);
  const [x, y] = [panel.left + panel.width / 2, panel.top + panel.height / 2];
  const project = camera.projection();
  return (i) => {
    const [right, up, near] = project([0, 1, 2].map((k) => positions[3 * i + k] / 32767));
    return [x + right * radius, y - up * radius, near];
  };
}

/** The index of the point at a position of a panel, or -1; points in front and attended points are preferred. */
export function pointAt(panel, x, y, camera, look, attended) {
  const positionOf = positionsIn(panel, camera, look);
  let best = -1, least = Math.max(7, panel.width / 30) ** 2;
  for (let i = 0; 3 * i < look.positions.length; i++) {
    const [right, down, near] = positionOf(i);
    const score = (right - x) ** 2 + (down - y) ** 2 - 4 * near - (attended(i) ? 8 : 0);
    if (score < least) [best, least] = [i, score];
  }
  return best;
}

const PER_PIXEL = 0.6;
const STILL = 5;
const TURNS = { ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -8], ArrowDown: [0, 8] };

/** `on`: a CloudCanvas. */
export function listenToHand(canvas, on) {
  const held = new Map();
  let travelled = 0;
  const between = (a, b) => [b.clientX - a.clientX, b.clientY - a.clientY];
  const apart = () => Math.hypot(...between(...held.values())) || 1;
  // If one finger scrolls the page, it turns the cloud only sideways: the first pixels of a scroll also arrive here.
  const scrolls = () => getComputedStyle(canvas).touchAction !== "none";

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, event);
    travelled = held.size === 1 ? 0 : Infinity;
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = held.get(event.pointerId);
    if (!last) { if (event.pointerType !== "touch") on.hover(event); return; }
    const before = held.size === 2 ? apart() : 0, moved = between(last, event);
    const [right, down] = moved.map((pixels) => pixels * PER_PIXEL);
    travelled += Math.hypot(...moved);
    held.set(event.pointerId, event);
    if (held.size === 2) {
      on.magnify(apart() / before);
      on.drag(right / 2, down / 2);
    } else if (travelled > STILL) on.drag(right, event.pointerType === "touch" && scrolls() ? 0 : down);
  });
  const release = (event) => {
    if (!held.delete(event.pointerId)) return;
    if (event.type === "pointerup" && travelled <= STILL) on.press(event);
    on.rest();
  };
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, release);
  canvas.addEventListener("pointerleave", () => on.leave());
  // Browsers report a pinch on a trackpad as a wheel event with the Ctrl key.
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) { on.leave(); return; }
    event.preventDefault();
    const step = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 * event.deltaY : event.deltaY;
    on.magnify(2 ** (-step / 500));
  }, { passive: false });
  // One finger scrolls the page (touch-action: pan-y), two fingers zoom the maps.
  canvas.addEventListener("touchmove", (event) => {
    if (event.touches.length > 1 && event.cancelable) event.preventDefault();
  }, { passive: false });
}

/** Apply a key to the camera; return true if the key has a meaning for it. */
export function turnByKey(event, camera) {
  if (event.ctrlKey || event.altKey || event.metaKey) return false;
  if (event.key in TURNS) camera.turn(...TURNS[event.key]);
  else if (event.key === "+" || event.key === "=") camera.magnify(1.15);
  else if (event.key === "-") camera.magnify(1 / 1.15);
  else if (event.key === "0") camera.reset();
  else return false;
  event.preventDefault();
  return true;
}
