/* Reads a text as lines of words, and keeps the line number for error messages. */

/** A file that cannot be read; the message names the file, the place and what was expected. */
export class ReadError extends Error {}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const ENDLESS = /^[+-]?(?:nan|inf|infinity)$/i;
const BLANKS = /[ \t\v\f]+/;
const LONGEST = 60;

/** Decode a text file with one character per byte, so that names and comments in any encoding are accepted. */
export function textOf(bytes) {
  const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  return new TextDecoder("latin1").decode(marked ? bytes.subarray(3) : bytes);
}

export class Lines {
  /** `comment`: where a comment begins, or null; `first`: the number of the first line. */
  constructor(text, name, { comment = /#.*/, first = 1 } = {}) {
    this.lines = text.split(/\r\n?|\n/);
    Object.assign(this, { name, comment, first, at: -1, found: [] });
  }

  /** The words of the next line that is not blank; null at the end. */
  next() {
    while (++this.at < this.lines.length) {
      const line = this.lines[this.at];
      // Only ASCII blanks separate words: a no-break space is an error.
      const words = (this.comment ? line.replace(this.comment, "") : line).split(BLANKS).filter(Boolean);
      if (words.length) return (this.found = words);
    }
    this.found = null;
    return null;
  }

  /** The words of the next line that is not blank; throws at the end of the file, naming what was expected. */
  take(expected) {
    if (!this.next()) throw this.error(expected);
    return this.found;
  }

  /** The words of the current line as numbers; those from index `free` on need not be finite. */
  numbers(words, free = Infinity) {
    return words.map((word, place) => {
      const number = NUMBER.test(word) ? Number(word) : NaN;
      if (!Number.isFinite(number) && !(place >= free && (NUMBER.test(word) || ENDLESS.test(word))))
        throw this.error(place < free ? "finite numbers" : "numbers");
      return number;
    });
  }

  whole(word) {
    if (!/^[+-]?\d{1,15}$/.test(word)) throw this.error("whole numbers");
    return Number(word);
  }

  /** The error for the current line: something else was expected. */
  error(expected) {
    const place = `${this.name}, line ${this.first + (this.found ? this.at : this.#lastSaid())}: expected ${expected}`;
    if (!this.found) return new ReadError(`${place} after this line, found the end of the file`);
    return new ReadError(`${place}, found ${excerpt(this.lines[this.at])}`);
  }

  #lastSaid() {
    let last = this.lines.length - 1;
    while (last > 0 && !this.lines[last].trim()) last--;
    return last;
  }
}

/** A text in quotes, shortened, with "?" for characters that do not print. */
export function excerpt(text) {
  const plain = text.trim().replace(/[^ -~]/g, "?");
  return `'${plain.length > LONGEST ? `${plain.slice(0, LONGEST)}…` : plain}'`;
}

/** A mesh from arrays of numbers; throws if it has no triangles. */
export function meshOf(vertices, triangles, name) {
  if (!triangles.length) throw new ReadError(`${name}: expected a mesh, found no triangles`);
  return { vertices: Float64Array.from(vertices), triangles: Int32Array.from(triangles) };
}
