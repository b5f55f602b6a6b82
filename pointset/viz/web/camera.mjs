/* A turntable camera, equal to pointset.viz.Camera in Python. */
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
export function reachOf(positions, camera) {
  let side = 0.05, up = 0.05;
  const tilt = (camera.home.elevation * Math.PI) / 180, near = camera.distance / (camera.distance - 1);
  for (let i = 0; i < positions.length; i += 3) {
    const flat = Math.hypot(positions[i], positions[i + 1]) / 32767, high = Math.abs(positions[i + 2]) / 32767;
    side = Math.max(side, flat);
    up = Math.max(up, high * Math.cos(tilt) + flat * Math.sin(tilt));
  }
  return [side * near, up * near];
}

/** The radius in pixels at which a cloud with extent `reach` (see `reachOf`) fits a box. */
export function radiusIn(width, height, reach) {
  return (0.95 / 2) * Math.min(width / reach[0], height / reach[1]);
}
