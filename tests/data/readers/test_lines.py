"""Headers of PLY and PCD, with the line ends that programs write, and lines of numbers."""

from pathlib import Path

import numpy as np
import pytest

from pointset.data.readers.lines import Lines, plain_text, read_header, whole_number
from pointset.data.readers.meshes import MeshError
from pointset.errors import PointsetError

WORDS = [["ply"], ["comment", "end_header"], ["end"], ["end_header", "x"]]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_header_ends_after_its_last_line(end: bytes, tmp_path: Path) -> None:
    text = end.join([b"ply", b" ", b"comment end_header", b"\tend", b"end_header\tx", b""])
    (tmp_path / "a.ply").write_bytes(text + b"\n1 2")
    assert read_header(tmp_path / "a.ply", "end_header") == (WORDS, len(text))


@pytest.mark.parametrize("content", [b"", b"ply\nend_header", b"ply\n" + b"a\n" * (1 << 19) + b"end_header\n"])
def test_a_header_without_an_end_is_another_file(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.ply").write_bytes(content)
    with pytest.raises(PointsetError, match="a header that ends with end_header: it is another kind of file, or cut"):
        read_header(tmp_path / "a.ply", "end_header")


@pytest.mark.parametrize(("word", "number"), [("0", 0), ("007", 7), ("+12", 12), ("9" * 18, 10**18 - 1)])
def test_counts_are_whole_numbers(word: str, number: int) -> None:
    assert whole_number(word) == number


@pytest.mark.parametrize("word", ["", "+", "-1", "1.0", "1e3", "1_0", " 1", "\u0661", "1" + 18 * "0"])
def test_other_words_are_no_counts(word: str) -> None:
    assert whole_number(word) == -1


def test_lines_are_those_with_words() -> None:
    lines = Lines(plain_text(b"head\r\n\r\n 1 2 # two\r\n \t\r\n3\r\n4 5 6"), "a.off", 5)
    assert lines.texts == [b"1 2 \n \t\n", b"3\n", b"4 5 6"]
    assert lines.widths.tolist() == [2, 1, 3]
    assert lines[np.array([True, False, True])].numbers().tolist() == [1, 2, 4, 5, 6]


@pytest.mark.parametrize("word", [b"x", b"1_0", b"0x1", b"1.0.0", b"1\xa02", b"--1", b"e"])
def test_the_first_line_with_another_word_is_named(word: bytes) -> None:
    lines = Lines(plain_text(b"head\n1 nan\n\n2 " + word + b"\ny\n"), "a.off", 5)
    with pytest.raises(MeshError, match=r"a\.off, line 4: expected only numbers, found '2 "):
        lines.numbers()
