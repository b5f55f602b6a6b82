"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const canvas = element("canvas");
const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0)).buffer;
const Codes = data.bits === 16 ? Uint16Array : Uint8Array;
const mostCode = 2 ** data.bits - 1;
const positions = new Int16Array(bytes(data.positions));
const palette = new Uint8Array(bytes(data.palette));
const n = data.points;
const HEAD = 18, LABEL = 15, GAP = 4;

const home = { ...data.camera, zoom: 1 };
const camera = { ...home };
let layer, panels = [], size = 100, tall = 100, selected = -1, waiting = false, slow = false;
let gl, program, uniforms, positionBuffer, colorBuffer;

const VERTEX = `#version 300 es
in vec3 position;
in float code;
uniform mat3 axes;
uniform float distance, zoom, fit, aspect, diameter, low, high, reach;
uniform int selected;
uniform sampler2D palette;
flat out vec3 color;
flat out float ring;
flat out float hollow;
flat out float pixel;
void main() {
  vec3 local = axes * position;
  float nearness = distance / (distance - local.z);
  float t = clamp((mix(low, high, code) + reach) / (2.0 * reach), 0.0, 1.0);
  ring = gl_VertexID == selected ? 1.0 : 0.0;
  hollow = code == 0.0 ? 1.0 : 0.0;
  // What gets more than uniform attention lies before everything else: a wall in front must not hide it.
  float layer = ring > 0.0 ? -1.0 : (t > 0.5 ? -0.9 : 0.0);
  float depth = layer + 0.43 * (1.0 - local.z);
  // What gets nothing lies behind everything else.
  if (hollow > 0.0 && ring == 0.0) depth = 0.87 + 0.06 * (1.0 - local.z);
  gl_Position = vec4(local.xy * vec2(1.0, 1.0 / aspect) * nearness * zoom * fit, depth, 1.0);
  gl_PointSize = max(diameter * nearness * sqrt(zoom) * (0.75 + 0.6 * t), hollow > 0.0 ? 4.0 : 1.5) + ring * (4.0 + 0.8 * diameter);
  pixel = 2.0 / gl_PointSize;
  color = texture(palette, vec2((t * 255.0 + 0.5) / 256.0, 0.5)).rgb;
  // Far points fade into the paper, but only those that are pale anyway.
  float pale = clamp((dot(color, vec3(0.2126, 0.7152, 0.0722)) - 0.55) / 0.2, 0.0, 1.0);
  color = mix(color, vec3(1.0), clamp(0.25 - 0.35 * local.z, 0.0, 0.35) * max(0.0, 1.0 - 2.0 * t) * pale);
}`;
const FRAGMENT = `#version 300 es
precision mediump float;
flat in vec3 color;
flat in float ring;
flat in float hollow;
flat in float pixel;
out vec4 shown;
void main() {
  float r = 2.0 * length(gl_PointCoord - 0.5);
  float edge = max(fwidth(r), 0.02);
  float alpha = 1.0 - smoothstep(1.0 - edge, 1.0, r);
  vec3 inside = color;
  if (hollow > 0.0) {
    inside = vec3(0.72);
    alpha *= smoothstep(1.0 - 2.2 * pixel, 1.0 - 1.2 * pixel, r);
  }
  if (alpha < 0.02) discard;
  shown = vec4(ring > 0.0 && r > 0.6 ? vec3(0.04, 0.55, 0.95) : inside, alpha);
}`;

function shader(kind, source) {
  const made = gl.createShader(kind);
  gl.shaderSource(made, source);
  gl.compileShader(made);
  if (!gl.getShaderParameter(made, gl.COMPILE_STATUS)) throw new Error(gl.getShaderInfoLog(made));
  return made;
}

function buffer(content) {
  const made = gl.createBuffer();
  gl.bindBuffer(gl.ARRAY_BUFFER, made);
  gl.bufferData(gl.ARRAY_BUFFER, content, gl.STATIC_DRAW);
  return made;
}

function setUp() {
  program = gl.createProgram();
  gl.attachShader(program, shader(gl.VERTEX_SHADER, VERTEX));
  gl.attachShader(program, shader(gl.FRAGMENT_SHADER, FRAGMENT));
  gl.bindAttribLocation(program, 0, "position");
  gl.bindAttribLocation(program, 1, "code");
  gl.linkProgram(program);
  gl.useProgram(program);
  const names = ["axes", "distance", "zoom", "fit", "aspect", "diameter", "low", "high", "reach", "selected"];
  uniforms = Object.fromEntries(names.map((name) => [name, gl.getUniformLocation(program, name)]));
  positionBuffer = buffer(positions);
  gl.enableVertexAttribArray(0);
  gl.enableVertexAttribArray(1);
  gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGB, 256, 1, 0, gl.RGB, gl.UNSIGNED_BYTE, palette);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.LINEAR);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  gl.enable(gl.DEPTH_TEST);
  gl.enable(gl.SCISSOR_TEST);
  gl.enable(gl.SAMPLE_ALPHA_TO_COVERAGE);
  gl.clearColor(1, 1, 1, 1);
}

/* Rows of numbers: the directions to the right, to the top and to the viewer. */
function axes() {
  const [a, e] = [camera.azimuth, camera.elevation].map((degrees) => (degrees * Math.PI) / 180);
  const [sa, ca, se, ce] = [Math.sin(a), Math.cos(a), Math.sin(e), Math.cos(e)];
  return [[-sa, ca, 0], [-se * ca, -se * sa, ce], [ce * ca, ce * sa, se]];
}

function draw() {
  waiting = false;
  const begun = performance.now();
  // A machine without a graphics processor shows every fourth point while the hand turns.
  const step = slow && held.size ? 4 : 1;
  const ratio = canvas.width / canvas.clientWidth;
  const turned = axes();
  gl.uniformMatrix3fv(uniforms.axes, false, [0, 1, 2].flatMap((i) => turned.map((row) => row[i])));
  gl.uniform1f(uniforms.distance, camera.distance);
  gl.uniform1f(uniforms.zoom, camera.zoom);
  gl.uniform1f(uniforms.fit, data.fit);
  gl.uniform1f(uniforms.aspect, data.aspect);
  gl.uniform1f(uniforms.diameter, Math.max(3, Math.min((0.7 * size) / Math.sqrt(n), 7)) * ratio);
  gl.uniform1f(uniforms.low, layer.low);
  gl.uniform1f(uniforms.high, layer.high);
  gl.uniform1f(uniforms.reach, layer.reach);
  gl.scissor(0, 0, canvas.width, canvas.height);
  gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT);
  gl.bindBuffer(gl.ARRAY_BUFFER, positionBuffer);
  gl.vertexAttribPointer(0, 3, gl.SHORT, true, 6 * step, 0);
  gl.bindBuffer(gl.ARRAY_BUFFER, colorBuffer);
  const kind = data.bits === 16 ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE;
  for (const panel of panels) {
    const box = [panel.left, canvas.clientHeight - panel.top - tall, size, tall].map((x) => Math.round(x * ratio));
    gl.viewport(...box);
    gl.scissor(...box);
    gl.uniform1i(uniforms.selected, step > 1 ? -1 : selected < 0 ? panel.mark : selected);
    gl.vertexAttribPointer(1, 1, kind, true, step * Codes.BYTES_PER_ELEMENT, panel.index * n * Codes.BYTES_PER_ELEMENT);
    gl.drawArrays(gl.POINTS, 0, Math.ceil(n / step));
  }
  if (held.size && !slow) {
    // Reading a pixel waits until all is drawn.
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    slow = performance.now() - begun > 60;
  }
}

function redraw() {
  if (!waiting) requestAnimationFrame(draw);
  waiting = true;
}

function show(number) {
  layer = data.layers[number];
  layer.codes = layer.codes || new Codes(bytes(layer.values));
  gl.deleteBuffer(colorBuffer);
  colorBuffer = buffer(layer.codes);
  for (const [i, button] of [...element("layers").children].entries()) button.setAttribute("aria-selected", i === number);
  element("meaning").textContent = layer.meaning;
  element("precision").textContent = layer.precision;
  element("ticks").replaceChildren(...layer.ticks.map(([place, text]) => {
    const tick = document.createElement("span");
    tick.textContent = text === "1" ? "1 = uniform" : text;
    tick.className = text === "1" ? "uniform" : "";
    tick.style.left = `${100 * place}%`;
    return tick;
  }));
  arrange();
}
