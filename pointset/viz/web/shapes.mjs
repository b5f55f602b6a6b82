/* The shapes that one can ask about: those that the page came with, and files of one's own. No document. */
import { bytes } from "./maps.mjs";
import { readShape, uprighted, usualUp } from "./readers.mjs";

export class Shapes {
  /** `given`: [{name, points, size}], as pointset.viz.live writes them. */
  constructor(given) { Object.assign(this, { given, own: [] }); }

  /**
   * A shape by its number {name, vertices, triangles, told}, upright as the models know them; `up` is the axis that is up
   * in a file, "y" or "z", or "auto" for what its kind of file usually has; `told` says which one was taken.
   */
  at(number, up) {
    if (number >= this.given.length) return upright(this.own[number - this.given.length], up);
    const { name, points, size } = this.given[number], whole = new Int16Array(bytes(points));
    return { name, vertices: Float64Array.from(whole, (one) => (one / 32767) * size), triangles: null, told: "" };
  }

  /** Read a file; the number of its shape. Throws a ReadError. */
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
