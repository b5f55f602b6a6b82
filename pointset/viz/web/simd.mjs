/*
 * Matrix products with WebAssembly SIMD, which multiplies four 32-bit numbers at a time. The binary program is
 * assembled here (WebAssembly core specification 2.0, chapter 5), so the page needs no separate file.
 */
const ROWS = 4, COLUMNS = 8, NUMBER = 4, VECTOR = 4 * NUMBER, PAGE = 65536;

const I32 = 0x7f, V128 = 0x7b, NOTHING = 0x40;
const END = 0x0b, I32_ADD = 0x6a, I32_SUB = 0x6b;
const get = (local) => [0x20, local], set = (local) => [0x21, local], tee = (local) => [0x22, local];
const constant = (number) => [0x41, ...signed(number)];
const simd = (code, ...rest) => [0xfd, ...unsigned(code), ...rest];
const load = (offset) => simd(0x00, 2, ...unsigned(offset)), store = (offset) => simd(0x0b, 2, ...unsigned(offset));
/** Load one number into all four lanes of a vector. */
const spread = (offset) => simd(0x09, 2, ...unsigned(offset));
const ZERO = simd(0x0c, ...Array(16).fill(0)), ADD = simd(0xe4), TIMES = simd(0xe6);

function unsigned(number) { return number < 128 ? [number] : [(number & 127) | 128, ...unsigned(number >>> 7)]; }

function signed(number) {
  return -64 <= number && number < 64 ? [number & 127] : [(number & 127) | 128, ...signed(number >> 7)];
}

const section = (code, ...content) => [code, ...unsigned(content.flat().length), ...content.flat()];
const text = (word) => [word.length, ...new TextEncoder().encode(word)];

/** Repeat `body` as often as the value of a local, which counts down to 0. */
const repeat = (local, ...body) => [
  0x03, NOTHING, ...body.flat(), ...get(local), ...constant(1), I32_SUB, ...tee(local), 0x0d, 0, END,
];
const advance = (local, bytes) => [...get(local), ...constant(bytes), I32_ADD, ...set(local)];

/**
 * The program for C = A B. A is stored in panels of ROWS rows, [panels][k][ROWS]; B in panels of COLUMNS columns,
 * [panels][k][COLUMNS]; C in tiles, [panels of A][panels of B][ROWS][COLUMNS]. A tile stays in eight vector registers
 * until it is complete.
 */
function assembled() {
  const [a, b, c, rows, columns, k, fromA, fromB, column, step, left, right, factor] = Array(13).keys();
  const tile = Array.from({ length: (ROWS * COLUMNS) / 4 }, (_, i) => factor + 1 + i);
  const addTo = (sum, half) => [...get(sum), ...get(factor), ...get(half), ...TIMES, ...ADD, ...set(sum)];
  const body = repeat(rows,
    [...get(b), ...set(fromB), ...get(columns), ...set(column)],
    repeat(column,
      tile.flatMap((sum) => [...ZERO, ...set(sum)]),
      [...get(a), ...set(fromA), ...get(k), ...set(step)],
      repeat(step,
        [...get(fromB), ...load(0), ...set(left), ...get(fromB), ...load(VECTOR), ...set(right)],
        Array.from({ length: ROWS }, (_, row) => [
          ...get(fromA), ...spread(NUMBER * row), ...set(factor),
          ...addTo(tile[2 * row], left), ...addTo(tile[2 * row + 1], right),
        ]).flat(),
        advance(fromA, NUMBER * ROWS),
        advance(fromB, NUMBER * COLUMNS)),
      tile.flatMap((sum, i) => [...get(c), ...get(sum), ...store(VECTOR * i)]),
      advance(c, NUMBER * ROWS * COLUMNS)),
    [...get(fromA), ...set(a)]);
  const code = [2, 4, I32, 3 + tile.length, V128, ...body, END]; // locals: i32 from fromA on, v128 from left on
  return new Uint8Array([
    0, 0x61, 0x73, 0x6d, 1, 0, 0, 0,
    ...section(1, [1, 0x60, 6, ...Array(6).fill(I32), 0]),
    ...section(3, [1, 0]),
    ...section(5, [1, 0, 1]),
    ...section(7, [2, ...text("memory"), 2, 0, ...text("multiply"), 0, 0]),
    ...section(10, [1, ...unsigned(code.length), ...code]),
  ]);
}

function begun() {
  try {
    return new WebAssembly.Instance(new WebAssembly.Module(assembled())).exports;
  } catch {
    return null; // not supported, or forbidden by the browser
  }
}

const program = begun();

/** True if this browser supports WebAssembly SIMD. */
export const hasSimd = program !== null;

/** Write A B^T [n, m], plus a bias on each row unless it is null, into C, like `product`, with 32-bit precision. */
export function simdProduct(A, B, bias, C) {
  const k = A.columns, rows = Math.ceil(A.rows / ROWS), columns = Math.ceil(B.rows / COLUMNS);
  const fromB = rows * ROWS * k, fromC = fromB + columns * COLUMNS * k, end = fromC + rows * ROWS * columns * COLUMNS;
  const short = NUMBER * end - program.memory.buffer.byteLength;
  if (short > 0) program.memory.grow(Math.ceil(short / PAGE));
  const numbers = new Float32Array(program.memory.buffer, 0, end);
  pack(A, ROWS, numbers, 0);
  pack(B, COLUMNS, numbers, fromB);
  program.multiply(0, NUMBER * fromB, NUMBER * fromC, rows, columns, k);
  for (let i = 0; i < A.rows; i++) {
    const from = fromC + (Math.floor(i / ROWS) * columns * ROWS + (i % ROWS)) * COLUMNS, to = C.start + i * C.stride;
    for (let j = 0; j < B.rows; j++)
      C.data[to + j] = numbers[from + (j >> 3) * ROWS * COLUMNS + (j & 7)] + (bias ? bias[j] : 0);
  }
}

/** Copy a matrix in panels of `size` rows, [panels][columns][size]; missing rows of the last panel are not written. */
function pack(X, size, numbers, start) {
  const k = X.columns;
  for (let i = 0; i < X.rows; i++) {
    let to = start + Math.floor(i / size) * size * k + (i % size);
    for (let p = 0, from = X.start + i * X.stride; p < k; p++, to += size) numbers[to] = X.data[from + p];
  }
}
