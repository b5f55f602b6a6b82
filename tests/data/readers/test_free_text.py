"""Point files without a header: one separator, decimal numbers, and no silently shifted columns."""

from pathlib import Path

import numpy as np
import pytest
from cloud_files import read_both, refusal

GOOD = {
    "blanks": b"1 2 3\n4 5 6\n",
    "tabs and blanks": b"\t1\t2  3 \n4 5\t6\n",
    "commas": b"1,2,3\n 4,5,6 \n",
    "commas and blanks": b"1, 2 ,\t3\n4 , 5, 6\n",
    "blanks before commas": b"1.0 ,2.0 ,3\n4 ,5.0 ,6\n",
    "semicolons": b"1;2;3\n4;5;6",
    "semicolons and blanks": b"1; 2; 3\n4; 5; 6",
    "CR": b"1 2 3\r4 5 6\r",
    "CR LF and LF": b"1 2 3\r\n\r\n4 5 6\n\r\n",
    "mark": b"\xef\xbb\xbf1 2 3\n4 5 6",
    "comments": b"# x, y\n1 2 3 // a,b\n\n//\n4 5 6# \xff",
    "spellings": b"+1. 2e0 .3E+1\n4.0 5 6e-0",
}


@pytest.mark.parametrize("name", GOOD)
def test_every_unambiguous_file_is_read(tmp_path: Path, name: str) -> None:
    np.testing.assert_array_equal(read_both(tmp_path / "a.xyz", GOOD[name]), [[1, 2, 3], [4, 5, 6]])


SEPARATORS = "one separator between all numbers, found several: write decimal commas as points"
BAD_LINES = [
    ("1,5 2,5 3,5", SEPARATORS),
    ("1,5, 2,5, 3,5", SEPARATORS),
    ("1,5;2,5;3,5", SEPARATORS),
    ("1,000 2,000 3,000", SEPARATORS),
    ("1, 2,3", SEPARATORS),
    ("1;2,3", SEPARATORS),
    ("1,,2,3", "on each side of a ','"),
    ("1,2,3,", "on each side of a ','"),
    (",1,2,3", "on each side of a ','"),
    ("1;2;", "on each side of a ';'"),
    ("x y z", "expected a number, found 'x': put # before a line that is not a point, or delete it"),
    ("X Y Z R G B Intensity", "expected a number, found 'X': put # before a line"),
    ("x,y,z", "expected a number, found 'x': put # before a line"),
    ("1 2 z", "expected a number, found 'z'"),
    ("1 2 nan", "finite number, found 'nan': leave the point out"),
    ("nan nan nan", "finite number, found 'nan': leave the point out"),
    ("1 2 -inf", "finite number, found '-inf'"),
    ("1 2 1e400", "finite number, found '1e400'"),
    ("1 2 0x10", "'0x10'"),
    ("1 2 1_000", "'1_000'"),
    ("1 2 1d5", "'1d5'"),
    ("1 2 ٣", "'٣'"),
    ("1 2 3\u00a04", "found '3"),
    ("1 2 3\0", "'3\\x00'"),
    ("1 2 3\x1c", "'3\\x1c'"),
    ("1 2 --3", "'--3'"),
    ("1 2 3.4.5", "'3.4.5'"),
    ("1 2 (3)", "'(3)'"),
    ("1 2", "numbers"),
    ("1 2 3 4", "numbers"),
    ("1 2 3 4 5 6 7", "numbers"),
]


@pytest.mark.parametrize(("line", "words"), BAD_LINES)
@pytest.mark.parametrize("before", ["", "# two\n\n1 2 3\n"])
def test_a_line_is_named(tmp_path: Path, line: str, words: str, before: str) -> None:
    message = refusal(tmp_path / "a.txt", f"{before}{line}\n7 8 9".encode())
    assert message.startswith(f", line {before.count(chr(10)) + 1}: "), message
    assert words in message or (before and "expected blanks between numbers" in message), message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1 2 3\n4,5,6", "expected blanks between numbers as in the lines before, found commas"),
        ("1,2,3\n4 5 6", "expected commas between numbers as in the lines before, found blanks"),
        ("1,2,3\n4, 5, 6", "expected commas between numbers .* found commas and blanks"),
        ("1, 2, 3\n4,5,6", "expected commas and blanks between numbers .* found commas"),
        ("1,2,3\n4;5;6", "expected commas between numbers .* found semicolons"),
        ("1 2 3\n4 5 6 7 8 9", "expected 3 numbers as in the lines before, found 6"),
        ("1 2 3\n4 5", "expected 3 numbers as in the lines before, found 2"),
    ],
)
def test_all_lines_are_as_the_first_one(tmp_path: Path, content: str, words: str) -> None:
    message = refusal(tmp_path / "a.xyz", content.encode())
    assert message.startswith(", line 2: ")
    assert all(part in message for part in words.split(" .* "))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_other_encodings_are_refused(tmp_path: Path, encoding: str) -> None:
    assert "found" in refusal(tmp_path / "a.xyz", "1 2 3\n".encode(encoding))


def test_a_line_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    assert ", line 2: expected at most" in refusal(tmp_path / "a.xyz", b"1 2 3\n" + b"1" * 2_000_000)


def test_no_word_takes_long(tmp_path: Path) -> None:
    """A regular expression with backtracking on a run of digits would take minutes."""
    assert "found '111" in refusal(tmp_path / "a.xyz", b"1 2 " + b"1" * 500_000 + b"x\n")
