/* Reads Wavefront OBJ: vertices and polygons; elements without area are ignored. */
import { Lines, meshOf, ReadError } from "./lines.mjs";
import { addPolygon } from "./polygons.mjs";

const NAMES = "g o usemtl mtllib usemap maplib shadow_obj trace_obj".split(" ");
const PASSED_OVER = new Set([
  ...NAMES,
  ..."vt vn vp l p s mg bevel c_interp d_interp lod cstype deg bmat step parm curv curv2 sp end con ctech res".split(" "),
]);

export function parseObj(text, name) {
  const lines = new Lines(continued(text, name), name), vertices = [], faces = [], triangles = [], widths = new Set();
  for (let words; (words = lines.next());) {
    const [keyword, ...rest] = words;
    if (keyword === "v") vertices.push(...vertex(lines, rest, widths));
    else if (keyword === "f") faces.push({ corners: face(lines, rest, vertices.length / 3), at: lines.at });
    else if (!PASSED_OVER.has(keyword))
      throw lines.error("a keyword of OBJ for vertices, polygons or what goes with them");
  }
  for (const { corners, at } of faces) {
    [lines.at, lines.found] = [at, []];
    const last = vertices.length / 3;
    if (Math.max(...corners) >= last) throw lines.error(`vertex indices up to ${last}, the vertices of the file`);
    addPolygon(triangles, corners, vertices);
  }
  return meshOf(vertices, triangles, name);
}

function vertex(lines, words, widths) {
  const numbers = lines.numbers(words, 3);
  if (![3, 4, 6, 7].includes(numbers.length))
    throw lines.error("the 3 coordinates of a vertex, or 4, 6 or 7 numbers with its weight and colour");
  widths.add(numbers.length);
  if (widths.size > 1 && !(widths.size === 2 && widths.has(3) && widths.has(6)))
    throw lines.error("as many numbers as in the vertices above");
  return numbers.slice(0, 3);
}

/** The corners of a face as indices from 0; negative numbers in the file count back from the last vertex above. */
function face(lines, words, above) {
  if (words.length < 3) throw lines.error("at least 3 corners of a face");
  const parts = words.map((word) => word.split("/"));
  if (parts.some((part) => part.length > 3 || part.length !== parts[0].length))
    throw lines.error("corners of one form: a, a/b, a//c or a/b/c");
  return parts.map(([own, ...others]) => {
    for (const other of others) if (other) lines.whole(other);
    const number = lines.whole(own);
    if (!number || number < -above) throw lines.error(`vertex indices from 1 on, or from -${above} to -1 as counted from here`);
    return number > 0 ? number - 1 : above + number;
  });
}

/**
 * Join each line that ends in a backslash with the next one, which becomes empty, so that line numbers do not change.
 * In comments and names, a backslash is part of a path.
 */
function continued(text, name) {
  const lines = text.split(/\r\n?|\n/);
  for (let i = 0; i < lines.length; i++) {
    const first = i;
    let line = lines[i], joined = line, keyword = "";
    while (line.endsWith("\\") && !line.includes("#")) {
      keyword ||= line.slice(0, -1).trim().split(/\s+/)[0];
      if (NAMES.includes(keyword)) break;
      line = lines[++i];
      if (line === undefined)
        throw new ReadError(`${name}, line ${first + 1}: expected another line after its backslash, found the end of the file`);
      // A number that is split by a backslash is ambiguous: the backslash stays in it, so it is rejected as a number.
      joined = (/\S\\$/.test(joined) && /^\S/.test(line) ? joined : joined.slice(0, -1)) + line;
      lines[i] = "";
    }
    lines[first] = joined;
  }
  return lines.join("\n");
}
