/* Draws many pictures of one cloud in one canvas, the same points in different colours: with WebGL 2, or without it. */
import { radiusIn } from "./camera.mjs";

const VERTEX = `#version 300 es
layout(location = 0) in vec3 position;
layout(location = 1) in float code;
uniform mat3 axes;
uniform vec2 radius;
uniform float distance, zoom, diameter, low, high, reach;
uniform int selected;
uniform vec3 paper;
uniform sampler2D palette;
flat out vec3 color;
flat out float ring;
flat out float hollow;
flat out float pixel;
const vec3 LUMA = vec3(0.2126, 0.7152, 0.0722);
void main() {
  vec3 local = axes * position;
  float nearness = distance / (distance - local.z);
  float t = clamp((mix(low, high, code) + reach) / (2.0 * reach), 0.0, 1.0);
  ring = gl_VertexID == selected ? 1.0 : 0.0;
  hollow = code == 0.0 ? 1.0 : 0.0;
  // Points with more than uniform attention are drawn in front of all others, so that nothing hides them.
  float front = ring > 0.0 ? -1.0 : (t > 0.5 ? -0.9 : 0.0);
  float depth = front + 0.43 * (1.0 - local.z);
  // Points with weight 0 are drawn behind all others.
  if (hollow > 0.0 && ring == 0.0) depth = 0.87 + 0.06 * (1.0 - local.z);
  gl_Position = vec4(local.xy * radius * nearness * zoom, depth, 1.0);
  float least = hollow > 0.0 ? 4.0 : 1.5;
  gl_PointSize = max(diameter * nearness * sqrt(zoom) * (0.75 + 0.6 * t), least) + ring * (4.0 + 0.8 * diameter);
  pixel = 2.0 / gl_PointSize;
  color = texture(palette, vec2((t * 255.0 + 0.5) / 256.0, 0.5)).rgb;
  // Distant points fade into the background, but only if their colour is already close to it.
  float pale = clamp((0.45 - abs(dot(color - paper, LUMA))) / 0.2, 0.0, 1.0);
  color = mix(color, paper, clamp(0.25 - 0.35 * local.z, 0.0, 0.35) * max(0.0, 1.0 - 2.0 * t) * pale);
}`;

const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 color;
flat in float ring;
flat in float hollow;
flat in float pixel;
uniform vec3 empty;
out vec4 shown;
void main() {
  float r = 2.0 * length(gl_PointCoord - 0.5);
  float edge = max(fwidth(r), 0.02);
  float alpha = 1.0 - smoothstep(1.0 - edge, 1.0, r);
  vec3 inside = color;
  if (hollow > 0.0) {
    inside = empty;
    alpha *= smoothstep(1.0 - 2.2 * pixel, 1.0 - 1.2 * pixel, r);
  }
  if (alpha < 0.02) discard;
  shown = vec4(ring > 0.0 && r > 0.6 ? vec3(0.04, 0.55, 0.95) : inside, alpha);
}`;

const UNIFORMS = "axes radius distance zoom diameter low high reach selected paper empty".split(" ");

/** A renderer for a canvas; `onRestored` is called after a lost context of WebGL has been restored. */
export function rendererFor(canvas, onRestored) {
  // The drawing buffer is preserved so that a print of the page has the clouds.
  const gl = canvas.getContext("webgl2", { antialias: true, alpha: false, preserveDrawingBuffer: true });
  return gl ? new Renderer(canvas, gl, onRestored) : new PlainRenderer(canvas);
}

/** The diameter in pixels of the dots of n points in a panel, for a cloud with this radius in pixels. */
function diameterIn({ width }, n, radius) {
  return Math.max(3, Math.min(0.7 * width / Math.sqrt(n), 0.7 * radius / Math.sqrt(n) + 4, 12));
}

class Renderer {
  constructor(canvas, gl, onRestored) {
    Object.assign(this, { canvas, gl });
    this.#setUp();
    canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
    canvas.addEventListener("webglcontextrestored", () => {
      this.#setUp();
      onRestored();
    });
  }

  /**
   * Draw all panels {left, top, width, height, at, mark}, in CSS pixels of the canvas; `at` is the place of the code of
   * the first point; with {first, count}, a panel shows so many of the points, from the first. `look`:
   * positions, Int16Array [3 n]: coordinates in radii of the cloud, times 32,767;
   * codes, Uint16Array; 0 is drawn as a hollow ring;
   * palette, Uint8Array [3 * 256]: RGB colours from the smallest value to the largest;
   * and {reach, scale: {low, high, reach}, paper, empty, selected}.
   */
  draw(panels, camera, look) {
    const { gl, uniforms, canvas, buffers } = this, turned = camera.axes(), n = look.positions.length / 3;
    const ratio = canvas.width / canvas.clientWidth;
    this.#send(look);
    gl.uniformMatrix3fv(uniforms.axes, false, [0, 1, 2].flatMap((i) => turned.map((row) => row[i])));
    for (const [name, value] of Object.entries({ ...look.scale, distance: camera.distance, zoom: camera.zoom }))
      gl.uniform1f(uniforms[name], value);
    for (const name of ["paper", "empty"]) gl.uniform3fv(uniforms[name], look[name]);
    gl.clearColor(...look.paper, 1);
    gl.scissor(0, 0, canvas.width, canvas.height);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
    for (const panel of panels) {
      const { left, top, width, height, at, first = 0, count = n } = panel;
      const box = [left, canvas.clientHeight - top - height, width, height].map((x) => Math.round(x * ratio));
      gl.viewport(...box);
      gl.scissor(...box);
      const radius = radiusIn(width, height, look.reach);
      gl.uniform2f(uniforms.radius, 2 * radius / width, 2 * radius / height);
      gl.uniform1f(uniforms.diameter, diameterIn(panel, count, radius) * ratio);
      gl.uniform1i(uniforms.selected, look.selected < 0 ? panel.mark : look.selected);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers.positions);
      gl.vertexAttribPointer(0, 3, gl.SHORT, true, 0, 6 * first);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers.codes);
      gl.vertexAttribPointer(1, 1, gl.UNSIGNED_SHORT, true, 0, 2 * at);
      gl.drawArrays(gl.POINTS, 0, count);
    }
  }

  /** Send what differs from the last picture. */
  #send({ positions, codes, palette }) {
    const { gl, buffers, sent } = this;
    for (const [name, content] of Object.entries({ positions, codes })) {
      if (content === sent[name]) continue;
      gl.bindBuffer(gl.ARRAY_BUFFER, buffers[name]);
      gl.bufferData(gl.ARRAY_BUFFER, content, gl.STATIC_DRAW);
    }
    if (palette !== sent.palette)
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, palette);
    this.sent = { positions, codes, palette };
  }

  #setUp() {
    const { gl } = this, program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const made = gl.createShader(kind);
      gl.shaderSource(made, source);
      gl.compileShader(made);
      gl.attachShader(program, made);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
      throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    this.uniforms = Object.fromEntries(UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)]));
    this.buffers = { positions: gl.createBuffer(), codes: gl.createBuffer() };
    this.sent = {};
    gl.enableVertexAttribArray(0);
    gl.enableVertexAttribArray(1);
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
    for (const side of [gl.TEXTURE_WRAP_S, gl.TEXTURE_WRAP_T]) gl.texParameteri(gl.TEXTURE_2D, side, gl.CLAMP_TO_EDGE);
    for (const ability of [gl.DEPTH_TEST, gl.SCISSOR_TEST, gl.SAMPLE_ALPHA_TO_COVERAGE]) gl.enable(ability);
  }
}

/** The same pictures for browsers without WebGL 2: slower, without smooth edges of dots and fading. */
class PlainRenderer {
  constructor(canvas) { Object.assign(this, { canvas, context: canvas.getContext("2d") }); }

  draw(panels, camera, { positions, codes, palette, scale: { low, high, reach: most }, reach, paper, empty, selected }) {
    const { canvas, context } = this, n = positions.length / 3, ratio = canvas.width / canvas.clientWidth;
    const project = camera.projection(), rgb = (color) => `rgb(${color.map((share) => Math.round(255 * share))})`;
    const places = Array.from({ length: n }, (_, i) => project([0, 1, 2].map((k) => positions[3 * i + k] / 32767)));
    const order = places.map((_, i) => i).sort((a, b) => places[a][2] - places[b][2]);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = rgb(paper);
    context.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    for (const panel of panels) {
      const { first = 0, count = n } = panel;
      const radius = radiusIn(panel.width, panel.height, reach), size = diameterIn(panel, count, radius) / 2;
      const ring = selected < 0 ? panel.mark : selected, levels = [[], [], []];
      for (const i of order.filter((point) => point >= first && point < first + count)) {
        const code = codes[panel.at + i - first], value = (low + (high - low) * code / 65535 + most) / (2 * most);
        levels[code === 0 ? 0 : value > 0.5 ? 2 : 1].push([i, Math.max(0, Math.min(1, value))]);
      }
      const circle = ([right, up], r) => {
        context.beginPath();
        context.arc(panel.left + panel.width / 2 + right * radius, panel.top + panel.height / 2 - up * radius, r, 0, 7);
      };
      levels.forEach((dots, level) => dots.forEach(([i, share]) => {
        const from = 3 * Math.round(255 * share);
        circle(places[i], level ? size * (0.75 + 0.6 * share) * Math.sqrt(camera.zoom) : 2);
        context.fillStyle = context.strokeStyle = level ? `rgb(${palette.slice(from, from + 3)})` : rgb(empty);
        if (level) context.fill(); else context.stroke();
      }));
      if (ring < 0) continue;
      circle(places[ring], 2 * size + 2);
      Object.assign(context, { strokeStyle: "#0b8cf2", lineWidth: 2 }).stroke();
      context.lineWidth = 1;
    }
  }
}
