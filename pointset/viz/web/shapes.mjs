/* The shapes of the live page: those included in it, and files of the user. No access to the document. */
import { bytes } from "./maps.mjs";
import { readShape, uprighted, usualUp } from "./readers.mjs";

export class Shapes {
  /** `given`: the included shapes, [{name, points, size}], written by pointset.viz.live. */
  constructor(given) { Object.assign(this, { given, own: [] }); }

  /**
   * The shape with this number, {name, vertices, triangles, told}, with z up as in training. `up` is the upward axis of
   * a file, "y" or "z", or "auto" for the usual axis of its format; `told` is a note that names the axis used.
   */
  at(number, up) {
    if (number >= this.given.length) return upright(this.own[number - this.given.length], up);
    const { name, points, size } = this.given[number], whole = new Int16Array(bytes(points));
    return { name, vertices: Float64Array.from(whole, (one) => (one / 32767) * size), triangles: null, told: "" };
  }

  /** Read a file, and return the number of its shape. Throws a ReadError. */
  async add(file) {
    this.own.push({ ...readShape(new Uint8Array(await file.arrayBuffer()), file.name), name: file.name });
    return this.given.length + this.own.length - 1;
  }
}

function upright(shape, asked) {
  const up = asked === "auto" ? usualUp(shape.name) ?? "z" : asked;
  const vertices = up === "y" ? uprighted(shape.vertices) : shape.vertices;
  return { ...shape, vertices, told: `${up} is up in this file: choose the other axis if it lies on its side` };
}
