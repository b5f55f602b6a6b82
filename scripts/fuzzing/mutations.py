"""Ways to damage a file of text, or of bytes, a little; about half of the mutations of text leave it legal."""

import re
import struct
from collections.abc import Callable, Sequence
from random import Random

NUMBERS = [b"0", b"1", b"2", b"3", b"4", b"7", b"-1", b"-2", b"-3", b"0.5", b"-0", b"007", b"+2", b"1.", b".5", b"1e3"]
SPECIAL = [
    *[
        b"nan",
        b"-inf",
        b"1e400",
        b"1e-400",
        b"1e39",
        b"1e308",
        b"4.9e-324",
        b"1.7",
        b"300",
        b"-129",
        b"65536",
        b"-32769",
    ],
    *[b"4294967295", b"4294967296", b"2147483648", b"9999999999", b"9" * 30, b"9" * 5000, b"18446744073709551616"],
    *[b"1_0", b"0x10", b"1,5", b"1,", b",", b"1d5", b"1e", b"e5", b".", b"-", b"--1", b"1-1", b"1.5.2", b"1.0", b"2.0"],
    *[b"\xd9\xa3", b"\xc2\xbd", b"1\xc2\xa02", b"1\x002", b"x" * 300, b"true", b"null", b"1f", b"1L", b"\x1b[31m"],
]
BYTES = b" \n\r\t.-+,;/\\#eE_0123456789xvf\x00\x0b\x0c\x1c\x85\xa0\xff\"'{}[]:"
NUMBER = re.compile(rb"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?")
LINE_ENDS = [b"\r\n", b"\r", b"\n\n", b" \n", b"\n \t\n"]

Mutation = Callable[[bytes, Random], bytes]


def some_line(content: bytes, random: Random) -> tuple[list[bytes], int]:
    """All lines, with their ends, and one of them that says something."""
    lines = content.splitlines(keepends=True) or [b""]
    return lines, random.randrange(len(lines))


def edit_line(change: Callable[[list[bytes], Random], list[bytes]]) -> Mutation:
    """A mutation of the words of one line."""

    def mutate(content: bytes, random: Random) -> bytes:
        lines, row = some_line(content, random)
        body = lines[row].rstrip(b"\r\n")
        end = lines[row][len(body) :]
        words = body.split(b" ")
        lines[row] = b" ".join(change(words, random)) + end
        return b"".join(lines)

    return mutate


def edit_alike(change: Callable[[list[bytes], Random], list[bytes]]) -> Mutation:
    """A mutation of the same word in all lines that have as many words and the same keyword."""

    def mutate(content: bytes, random: Random) -> bytes:
        lines, row = some_line(content, random)
        like, seed = alike(lines[row]), random.random()
        for place, line in enumerate(lines):
            if alike(line) == like:
                body = line.rstrip(b"\r\n")
                lines[place] = b" ".join(change(body.split(b" "), Random(seed))) + line[len(body) :]
        return b"".join(lines)

    return mutate


def alike(line: bytes) -> tuple[int, bytes]:
    """What lines have in common that say the same: the number of words, and the first if it is one of letters."""
    words = line.split() or [b""]
    return len(words), words[0] if words[0].isalpha() else b""


def drop_word(words: list[bytes], random: Random) -> list[bytes]:
    """One word less."""
    place = random.randrange(len(words))
    return words[:place] + words[place + 1 :]


def repeat_word(words: list[bytes], random: Random) -> list[bytes]:
    """One word twice."""
    place = random.randrange(len(words))
    return words[: place + 1] + words[place:]


def swap_words(words: list[bytes], random: Random) -> list[bytes]:
    """Two words in each other's place."""
    i, j = random.randrange(len(words)), random.randrange(len(words))
    words[i], words[j] = words[j], words[i]
    return words


def glue_words(words: list[bytes], random: Random) -> list[bytes]:
    """Two words without the blank between them."""
    place = random.randrange(len(words))
    return [*words[:place], b"".join(words[place : place + 2]), *words[place + 2 :]]


def cut_word(words: list[bytes], random: Random) -> list[bytes]:
    """A word without its end."""
    place = random.randrange(len(words))
    words[place] = words[place][: random.randrange(len(words[place]) + 1)]
    return words


def space_words(words: list[bytes], random: Random) -> list[bytes]:
    """Another blank between two words, before or after them."""
    place = random.randrange(len(words) + 1)
    blank = random.choice([b"", b"", b"\t", b"\t", b"\v", b"\f", b" \t "])
    return [*words[:place], blank, *words[place:]]


def tab_words(words: list[bytes], random: Random) -> list[bytes]:
    """Tabs in place of blanks, in one line."""
    return [random.choice([b"\t", b"  ", b" \t"]).join(words)]


def replace_number(values: Sequence[bytes]) -> Mutation:
    """A mutation that writes something else for one number."""

    def mutate(content: bytes, random: Random) -> bytes:
        found = list(NUMBER.finditer(content))
        if not found:
            return content + random.choice(values)
        chosen = random.choice(found)
        return content[: chosen.start()] + random.choice(values) + content[chosen.end() :]

    return mutate


def respell_number(content: bytes, random: Random) -> bytes:
    """One number by a neighbour or in another spelling."""
    found = list(NUMBER.finditer(content))
    if not found:
        return content
    chosen = random.choice(found)
    word = chosen[0]
    try:
        value = float(word)
        if word.lstrip(b"+-").isdigit() and len(word) < 10:
            step = random.choice([-2, -1, 1, 2])
            new = b"%d" % (int(word) + step)
        else:
            new = random.choice(["{:.3e}", "{:+.4f}", "{!r}", "{:.2f}", "{:G}"]).format(value).encode()
    except ValueError:
        new = b"1"
    return content[: chosen.start()] + new + content[chosen.end() :]


def drop_line(content: bytes, random: Random) -> bytes:
    """One line less."""
    lines, row = some_line(content, random)
    return b"".join(lines[:row] + lines[row + 1 :])


def repeat_line(content: bytes, random: Random) -> bytes:
    """One line twice."""
    lines, row = some_line(content, random)
    return b"".join(lines[: row + 1] + lines[row:])


def swap_lines(content: bytes, random: Random) -> bytes:
    """Two lines in each other's place."""
    lines, row = some_line(content, random)
    other = random.randrange(len(lines))
    lines[row], lines[other] = lines[other], lines[row]
    return b"".join(lines)


def move_line(content: bytes, random: Random) -> bytes:
    """A line somewhere else."""
    lines, row = some_line(content, random)
    line = lines.pop(row)
    lines.insert(random.randrange(len(lines) + 1), line)
    return b"".join(lines)


def join_lines(content: bytes, random: Random) -> bytes:
    """Two lines without the end between them."""
    lines, row = some_line(content, random)
    lines[row] = lines[row].rstrip(b"\r\n") + random.choice([b" ", b""])
    return b"".join(lines)


def break_line(content: bytes, random: Random) -> bytes:
    """A line end in place of a blank."""
    places = [match.start() for match in re.finditer(b" ", content)]
    if not places:
        return content + b"\n"
    place = random.choice(places)
    return content[:place] + random.choice([b"\n", b"\r\n", b"\r"]) + content[place + 1 :]


def insert_empty_line(content: bytes, random: Random) -> bytes:
    """A line that says nothing."""
    lines, row = some_line(content, random)
    lines.insert(row, random.choice([b"\n", b"\r\n", b"  \n", b"\t\n", b"\r"]))
    return b"".join(lines)


def end_lines_otherwise(content: bytes, random: Random) -> bytes:
    """Another line end, everywhere or in one place."""
    if random.random() < 0.6:
        return content.replace(b"\n", random.choice(LINE_ENDS))
    lines, row = some_line(content, random)
    lines[row] = lines[row].rstrip(b"\r\n") + random.choice(LINE_ENDS)
    return b"".join(lines)


def without_last_end(content: bytes, random: Random) -> bytes:
    """No line end, or several, after the last line."""
    return content.rstrip(b"\r\n") + random.choice([b"", b"", b"\n\n", b" ", b"\r\n \r\n"])


def cut_off(content: bytes, random: Random) -> bytes:
    """Only the beginning."""
    return content[: random.randrange(len(content) + 1)]


def cut_lines(content: bytes, random: Random) -> bytes:
    """Only the first lines."""
    lines, row = some_line(content, random)
    return b"".join(lines[:row])


def surplus(content: bytes, random: Random) -> bytes:
    """Something after the end."""
    more = [b"\x00", b"\x00" * 9, b"0", b"0 0 0\n", b"\x1a", b"3 0 1 2\n", b"abc\n", content[-7:], content]
    return content + random.choice(more)


def flip_bit(content: bytes, random: Random) -> bytes:
    """One bit the other way."""
    if not content:
        return content
    place = random.randrange(len(content))
    return content[:place] + bytes([content[place] ^ (1 << random.randrange(8))]) + content[place + 1 :]


def put_byte(content: bytes, random: Random) -> bytes:
    """One byte inserted or replaced, mostly one that means something."""
    place = random.randrange(len(content) + 1)
    byte = bytes([random.choice(BYTES) if random.random() < 0.8 else random.randrange(256)])
    return content[:place] + byte + content[place + random.randrange(2) :]


def drop_bytes(content: bytes, random: Random) -> bytes:
    """One or a few bytes less."""
    place = random.randrange(len(content) + 1)
    return content[:place] + content[place + random.choice([1, 1, 1, 2, 3, 8, 40]) :]


def repeat_bytes(content: bytes, random: Random) -> bytes:
    """A few bytes twice."""
    place, length = random.randrange(len(content) + 1), random.choice([1, 2, 4, 8, 30])
    return content[: place + length] + content[place:]


def put_mark(content: bytes, random: Random) -> bytes:
    """A byte order mark, or another encoding."""
    kind = random.randrange(8)
    if kind < 6:
        return b"\xef\xbb\xbf" + content
    return content.decode("latin-1").encode("utf-16" if kind == 6 else "utf-16-le")


def keep(content: bytes, random: Random) -> bytes:
    """No change."""
    return content


WORD_CHANGES = [
    drop_word,
    repeat_word,
    swap_words,
    glue_words,
    cut_word,
    space_words,
    space_words,
    tab_words,
    tab_words,
]
TEXT: list[Mutation] = [
    *[edit_line(change) for change in WORD_CHANGES],
    *[edit_alike(change) for change in (drop_word, repeat_word, swap_words)],
    *[replace_number(NUMBERS)] * 4,
    *[replace_number(SPECIAL)] * 3,
    *[respell_number] * 6,
    *[drop_line, repeat_line, swap_lines, swap_lines, move_line, move_line, join_lines, break_line],
    *[insert_empty_line] * 2,
    *[end_lines_otherwise] * 3,
    *[without_last_end] * 2,
    *[cut_off, cut_lines, surplus, flip_bit, put_byte, put_byte, drop_bytes, repeat_bytes, put_mark],
    *[keep] * 2,
]
WORDS = [b"\x00" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\x00\x00\xc0\x7f", b"\x00\x00\x80\x7f", b"\x80\x00\x00\x00"]


def put_word(content: bytes, random: Random) -> bytes:
    """Four bytes that are a special number, or one near what was there."""
    place = random.randrange(max(len(content) - 3, 1))
    if random.random() < 0.5 or len(content) < place + 4:
        return content[:place] + random.choice(WORDS) + content[place + 4 :]
    code = random.choice(["<I", ">I"])
    value = (struct.unpack_from(code, content, place)[0] + random.choice([-1, 1, 2, 256])) % 2**32
    return content[:place] + struct.pack(code, value) + content[place + 4 :]


BINARY: list[Mutation] = [
    *[flip_bit] * 8,
    *[put_word] * 4,
    *[cut_off, cut_off, surplus, surplus, put_byte, drop_bytes, repeat_bytes, keep],
]


def mutate(content: bytes, random: Random, mutations: Sequence[Mutation]) -> bytes:
    """One to four mutations, mostly one."""
    for _ in range(random.choice([1, 1, 1, 2, 2, 3, 4])):
        content = random.choice(mutations)(content, random)
    return content


def with_comments(mark: bytes) -> Mutation:
    """A mutation that writes a comment: a line, or the rest of one."""

    def comment(content: bytes, random: Random) -> bytes:
        lines, row = some_line(content, random)
        remark = mark + random.choice([b"", b" 1 2 3", b"x", b" \xff\x00 caf\xc3\xa9", b" \\"])
        if random.random() < 0.5:
            lines.insert(row, remark + b"\n")
        else:
            body = lines[row].rstrip(b"\r\n")
            lines[row] = body + random.choice([b" ", b""]) + remark + lines[row][len(body) :]
        return b"".join(lines)

    return comment


def with_words(words: Sequence[bytes]) -> Mutation:
    """A mutation that writes a word of the format in place of another word, or before it."""

    def put(content: bytes, random: Random) -> bytes:
        found = list(re.finditer(rb"[^\s]+", content))
        if not found:
            return random.choice(words)
        chosen = random.choice(found)
        end = chosen.start() if random.random() < 0.3 else chosen.end()
        return content[: chosen.start()] + random.choice(words) + content[end:]

    return put


def joined(others: Sequence[bytes]) -> Mutation:
    """A mutation that puts another file after this one, or its second half after the first of this one."""

    def join(content: bytes, random: Random) -> bytes:
        other = random.choice(others)
        if random.random() < 0.5:
            return content + other
        return content[: len(content) // 2] + other[len(other) // 2 :]

    return join
