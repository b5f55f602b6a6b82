"""Ways to damage a file of text, or of bytes, a little; about half of the mutations of text leave it legal."""

import re
from collections.abc import Sequence
from random import Random

from fuzzing.changes_of_bytes import cut_off, drop_bytes, flip_bit, put_byte, put_mark, put_word, repeat_bytes, surplus
from fuzzing.changes_of_text import (
    Mutation,
    break_line,
    cut_lines,
    cut_word,
    drop_line,
    drop_word,
    edit_alike,
    edit_line,
    end_lines_otherwise,
    glue_words,
    insert_empty_line,
    join_lines,
    move_line,
    repeat_line,
    repeat_word,
    replace_number,
    respell_number,
    some_line,
    space_words,
    swap_lines,
    swap_words,
    tab_words,
    without_last_end,
)

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
