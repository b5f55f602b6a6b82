"""Ways to damage one line of a text, or lines that are alike: their words, their numbers, their order and ends."""

import re
from collections.abc import Callable, Sequence
from random import Random

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


def cut_lines(content: bytes, random: Random) -> bytes:
    """Only the first lines."""
    lines, row = some_line(content, random)
    return b"".join(lines[:row])
