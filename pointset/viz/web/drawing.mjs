/* Draws many pictures of one cloud in one WebGL canvas: the same points in different colours. */
import { radiusIn } from "./camera.mjs";
import { FRAGMENT, VERTEX } from "./shaders.mjs";

const UNIFORMS = ["axes", "radius", "distance", "zoom", "diameter", "low", "high", "reach", "selected", "paper", "empty"];

export class Renderer {
  /** Throws if the browser has no WebGL 2; `onRestored` is called after a lost context has been restored. */
  constructor(canvas, onRestored) {
    this.canvas = canvas;
    // The drawing buffer is preserved for printing.
    this.gl = canvas.getContext("webgl2", { antialias: true, alpha: false, preserveDrawingBuffer: true });
    if (!this.gl) throw new Error("no WebGL 2");
    this.kept = {};
    this.#setUp();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.#setUp();
      for (const [name, content] of Object.entries(this.kept)) this[name] = content;
      onRestored();
    });
  }

  /** Int16Array [3 n]: coordinates in radii of the cloud, times 32,767. */
  set points(positions) {
    this.kept.points = positions;
    this.positionBuffer = this.#buffer(this.positionBuffer, positions);
  }

  /** Uint8Array or Uint16Array [pictures * n]; 0 is drawn as a hollow ring. */
  set codes(codes) {
    this.kept.codes = codes;
    this.codeBuffer = this.#buffer(this.codeBuffer, codes);
  }

  /** Uint8Array [3 * 256]: RGB colours from the smallest value to the largest. */
  set palette(bytes) {
    this.kept.palette = bytes;
    const gl = this.gl;
    gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, bytes);
  }

  /**
   * Draw all panels {left, top, width, height, index, mark}, in CSS pixels of the canvas.
   * `look`: {reach, scale: {low, high, reach}, paper, empty, selected, every}; only every `every`-th point is drawn.
   */
  draw(panels, camera, look) {
    const { gl, uniforms, canvas } = this;
    const { points, codes } = this.kept;
    const n = points.length / 3, every = look.every || 1, bytes = codes.BYTES_PER_ELEMENT;
    const ratio = canvas.width / canvas.clientWidth;
    const turned = camera.axes();
    gl.uniformMatrix3fv(uniforms.axes, false, [0, 1, 2].flatMap((i) => turned.map((row) => row[i])));
    for (const [name, value] of Object.entries({ ...look.scale, distance: camera.distance, zoom: camera.zoom }))
      gl.uniform1f(uniforms[name], value);
    for (const name of ["paper", "empty"]) gl.uniform3fv(uniforms[name], look[name]);
    gl.clearColor(...look.paper, 1);
    gl.scissor(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.positionBuffer);
    gl.vertexAttribPointer(0, 3, gl.SHORT, true, 6 * every, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.codeBuffer);
    const kind = bytes === 2 ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE;
    for (const panel of panels) {
      const { left, top, width, height } = panel;
      const box = [left, canvas.clientHeight - top - height, width, height].map((x) => Math.round(x * ratio));
      gl.viewport(...box);
      gl.scissor(...box);
      const radius = 2 * radiusIn(width, height, look.reach);
      gl.uniform2f(uniforms.radius, radius / width, radius / height);
      gl.uniform1f(uniforms.diameter, Math.max(3, Math.min((0.7 * width) / Math.sqrt(n), 0.35 * radius / Math.sqrt(n) + 4, 12)) * ratio);
      gl.uniform1i(uniforms.selected, every > 1 ? -1 : look.selected < 0 ? panel.mark : look.selected);
      gl.vertexAttribPointer(1, 1, kind, true, every * bytes, panel.index * n * bytes);
      gl.drawArrays(gl.POINTS, 0, Math.ceil(n / every));
    }
  }

  /** Wait until drawing is complete. */
  finish() { this.gl.readPixels(0, 0, 1, 1, this.gl.RGBA, this.gl.UNSIGNED_BYTE, new Uint8Array(4)); }

  #setUp() {
    const gl = this.gl;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const made = gl.createShader(kind);
      gl.shaderSource(made, source);
      gl.compileShader(made);
      gl.attachShader(program, made);
    }
    gl.bindAttribLocation(program, 0, "position");
    gl.bindAttribLocation(program, 1, "code");
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
      throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    this.uniforms = Object.fromEntries(UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]));
    this.positionBuffer = this.codeBuffer = null;
    gl.enableVertexAttribArray(0);
    gl.enableVertexAttribArray(1);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
    for (const ability of [gl.DEPTH_TEST, gl.SCISSOR_TEST, gl.SAMPLE_ALPHA_TO_COVERAGE]) gl.enable(ability);
  }

  #buffer(before, content) {
    const gl = this.gl;
    gl.deleteBuffer(before);
    const made = gl.createBuffer();
    gl.bindBuffer(gl.ARRAY_BUFFER, made);
    gl.bufferData(gl.ARRAY_BUFFER, content, gl.STATIC_DRAW);
    return made;
  }
}
