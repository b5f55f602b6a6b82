/* A text as lines of words, with the number of each for the error that names it. */

/** A file that cannot be read; the message says which, where and what was expected. */
export class ReadError extends Error {}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const ENDLESS = /^[+-]?(?:nan|inf|infinity)$/i;
const BLANKS = /[ \t\v\f]+/;
const LONGEST = 60;

/** What a byte says as one character: files of text are read so, whatever their names and comments are written in. */
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

  /** The words of the next line that has some; null at the end. */
  next() {
    while (++this.at < this.lines.length) {
      const line = this.lines[this.at];
      // Blanks are those of ASCII: a no-break space is a mistake.
      const words = (this.comment ? line.replace(this.comment, "") : line).split(BLANKS).filter(Boolean);
      if (words.length) return (this.found = words);
    }
    this.found = null;
    return null;
  }

  /** The words of the next line; an error at the end of the file, where `expected` would stand. */
  take(expected) {
    if (!this.next()) throw this.error(expected);
    return this.found;
  }

  /** Numbers of the present line; those from the place `free` on need not be finite. */
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

  /** At the present line, something else was expected. */
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

/** Some text in quotes, short, and without what does not print. */
export function excerpt(text) {
  const plain = text.trim().replace(/[^ -~]/g, "?");
  return `'${plain.length > LONGEST ? `${plain.slice(0, LONGEST)}…` : plain}'`;
}

/** A mesh of arrays of numbers, or an error where it has no triangles. */
export function meshOf(vertices, triangles, name) {
  if (!triangles.length) throw new ReadError(`${name}: expected a mesh, found no triangles`);
  return { vertices: Float64Array.from(vertices), triangles: Int32Array.from(triangles) };
}
