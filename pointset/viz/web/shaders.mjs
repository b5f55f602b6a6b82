/* WebGL shaders: each point is a round dot, coloured by its code. */
export const VERTEX = `#version 300 es
in vec3 position;
in float code;
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

export const FRAGMENT = `#version 300 es
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
