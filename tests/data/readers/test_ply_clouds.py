"""Clouds in PLY files: exactly the columns and elements of the header, or an error that names the line."""

import re
from pathlib import Path

import numpy as np
import pytest
from cloud_files import read_both, refusal

from pointset.data import read_cloud
from pointset.data.readers.clouds import CloudError

HEAD = ["ply", "format ascii 1.0", "element vertex 2"]
AXES = ["property float x", "property float y", "property float z"]
COLOURED = [*HEAD, *AXES, "property uchar red", "property uint id", "property double weight", "end_header"]
POINTS = [[0, 1, 2], [3, 4, 5]]


def text(*lines: str, end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode()


def plain(*lines: str) -> bytes:
    return text(*HEAD, *AXES, "end_header", *lines)


def binary(*more: str, data: bytes = b"", end: bytes = b"\n") -> bytes:
    lines = ["ply", "format binary_little_endian 1.0", "element vertex 2", *AXES, *more, "end_header"]
    points = np.array(POINTS, "<f4").tobytes()
    return b"".join(line.encode() + end for line in lines) + points + data


GOOD = {
    "empty lines": plain("", "0 1 2", " ", "3 4 5", "", ""),
    "no last line end": plain("0 1 2", "3 4 5").rstrip(),
    "CR LF": text(*HEAD, *AXES, "end_header", "0 1 2", "3 4 5", end="\r\n"),
    "CR": text(*HEAD, *AXES, "end_header", "0 1 2", "3 4 5", end="\r"),
    "blanks behind": text(*HEAD, *AXES, "end_header", "0 1 2", "3 4 5", end=" \t\n"),
    "mixed line ends": plain("0 1 2\r", "3 4 5\r").replace(b"1.0\n", b"1.0\r"),
    "limits": text(*COLOURED, "0 1 2 255 4294967295 1e308", "3 4 5 0 0 -1e-400"),
    "odd whole numbers": text(*COLOURED, "0 1 2 +7 007 0", "3 4 5 -0 -000 0"),
    "nan beside points": text(*COLOURED, "0 1 2 1 1 nan", "3 4 5 1 1 -Infinity"),
    "no faces": text(*HEAD, *AXES, "element face 0", "property list uchar int a", "end_header", "0 1 2", "3 4 5"),
    "comment in the header": plain("0 1 2", "3 4 5").replace(b"format", b"comment end_header\xff\nobj_info\nformat"),
    "binary": binary(),
    "binary, CR LF": binary(end=b"\r\n"),
    "binary, CR": binary(end=b"\r"),
    "binary, another element": binary("element camera 3", "property short a", data=bytes(6)),
    "binary, no faces": binary("element face 0", "property list uchar int a"),
}


@pytest.mark.parametrize("name", GOOD)
def test_every_unambiguous_file_is_read(tmp_path: Path, name: str) -> None:
    np.testing.assert_array_equal(read_both(tmp_path / "a.ply", GOOD[name]), POINTS)


BAD_LINES = {
    "0 1 2 300 1 1": "line 11: .* whole number from 0 to 255, found '300'",
    "0 1 2 1 -1 1": "line 11: .* whole number from 0 to 4294967295, found '-1'",
    "0 1 2 1.7 1 1": "found '1.7'",
    "0 1 2 1.0 1 1": "found '1.0'",
    "0 1 2 1e2 1 1": "found '1e2'",
    "0 1 2 1 4294967296 1": "found '4294967296'",
    "0 1 2 1 1 1e400": "found '1e400'",
    "0 1 1e39 1 1 1": "float32, found '1e39'",
    "0 1 2 1 1": "expected 6 numbers, found 5",
    "0 1 2 1 1 1 1": "expected 6 numbers, found 7",
    "0 1 nan 1 1 1": "finite number, found 'nan'",
    "0 1 2_0 1 1 1": "found '2_0'",
    "0 1 0x2 1 1 1": "found '0x2'",
    "0 1 2 1 1 1d5": "found '1d5'",
    "0 1 2 1 1 1 # colour": "found 8",
    "0 1 2 1 1 \x1b[31m": r"found '\\x1b\[31m'",
    "0 1 2 1 " + 5000 * "9" + " 1": "line 11: .* found '999",
}


@pytest.mark.parametrize(("line", "words"), BAD_LINES.items())
def test_a_line_is_named(tmp_path: Path, line: str, words: str) -> None:
    message = refusal(tmp_path / "a.ply", text(*COLOURED, line, "3 4 5 1 1 1"))
    assert re.search(words, message), message
    assert message.startswith(", line 11: ")


def swapped(old: str, new: str) -> bytes:
    content = plain("0 1 2", "3 4 5")
    assert old.encode() in content
    return content.replace(old.encode(), new.encode(), 1)


BAD_FILES = {
    "cut": (plain("0 1 2"), "expected 2 points, as its header says, found 1: .*cut off"),
    "surplus line": (plain("0 1 2", "3 4 5", "6 7 8"), ", line 10: expected the end of the file"),
    "format": (swapped("ascii 1.0", "ascii 2.0"), "'format ascii 2.0'"),
    "order": (swapped("format ascii 1.0\nelement vertex 2\n", "element vertex 2\nformat ascii 1.0\n"), "format"),
    "count": (swapped("vertex 2", "vertex -2"), ", line 3: .*'element vertex -2'"),
    "long count": (swapped("vertex 2", "vertex " + 5000 * "2"), ", line 3: .*'element vertex 22"),
    "no number": (swapped("vertex 2", "vertex 2_0"), ", line 3: "),
    "type": (swapped("float y", "flaot y"), ", line 5: .*'property flaot y'"),
    "word too many": (swapped("float y", "float y y"), ", line 5: "),
    "end": (swapped("end_header", "end_header 2"), ", line 7: .*'end_header 2'"),
    "empty": (text("ply", "format ascii 1.0", "end_header", "0 1 2"), "element called vertex, found ''"),
    "property first": (swapped("element vertex 2\n", "property float x\nelement vertex 2\n"), ", line 3: "),
    "two properties": (swapped("float z", "float z\nproperty float x"), "two properties .*'vertex' called 'x'"),
    "two elements": (
        swapped("end_header", "element vertex 2\nproperty int a\nend_header"),
        "two elements called 'vertex'",
    ),
    "list of": (swapped("end_header", "element a 0\nproperty list float int b\nend_header"), "list float int b"),
    "length of": (swapped("end_header", "element a 0\nproperty list byte int b\nend_header"), ", line 8: .*list byte"),
    "no properties": (swapped("end_header", "element a 1\nend_header"), "'a' without properties"),
    "faces": (swapped("end_header", "element face 1\nproperty list uchar int a\nend_header"), "is a mesh"),
    "strips": (swapped("end_header", "element tristrips 1\nproperty list int int a\nend_header"), "is a mesh"),
    "mark": (b"\xef\xbb\xbf" + plain("0 1 2", "3 4 5"), "begins with ply"),
    "binary, cut": (binary()[:-1], "as its header says, found .*cut off"),
    "binary, surplus": (binary() + b"\0", "bytes, as its header says, found"),
    "binary, after": (binary("element camera 3", "property short a", data=bytes(5)), "cut off"),
    "binary, lists": (binary("element seen 1", "property list uchar int a", data=b"\0"), "lists in its element 'seen'"),
    "binary, line ends": (binary(end=b"\r\n").replace(b"ply\r", b"ply"), "first and last line end alike"),
    "binary, lying": (binary().replace(b"vertex 2", b"vertex 9999999999"), "expected 120,000,000,"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_what_is_not_as_announced_is_refused(tmp_path: Path, name: str) -> None:
    content, words = BAD_FILES[name]
    message = refusal(tmp_path / "a.ply", content)
    assert re.search(words, message), message


SEEN = ["element seen 2", "property list uchar int points", "property char a", "end_header"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("2 1 2 3", ""),
        ("0 3", ""),
        ("3 1 2 3", "expected 1 numbers for 'a', found 0"),
        ("4 1 2 3", "expected 4 numbers for 'points', found 3"),
        ("2 1 2 3 4", "expected 4 numbers, found 5"),
        ("-1 3", "from 0 to 255, found '-1'"),
        ("300 3", "found '300'"),
        ("1 2 128", "from -128 to 127, found '128'"),
        ("1 0.5 1", "found '0.5'"),
    ],
)
def test_lists_beside_the_points_are_whole(tmp_path: Path, line: str, words: str) -> None:
    content = text(*HEAD, *AXES, *SEEN, "0 1 2", "3 4 5", "", "1 5 6", line)
    if not words:
        np.testing.assert_array_equal(read_both(tmp_path / "a.ply", content), POINTS)
        return
    message = refusal(tmp_path / "a.ply", content)
    assert message.startswith(", line 15: ")
    assert words in message


@pytest.mark.parametrize("kind", ["list uchar int", "uchar"])
def test_entries_that_are_missing_beside_the_points_are_told(tmp_path: Path, kind: str) -> None:
    content = text(*HEAD, *AXES, "element seen 3", f"property {kind} points", "end_header", "0 1 2", "3 4 5", "0", "0")
    words = "expected 3 entries of its element 'seen', as its header says, found 2: it may be cut off"
    assert refusal(tmp_path / "a.ply", content) == f": {words}"


def test_normals_that_are_not_finite_matter_to_those_who_ask_for_them(tmp_path: Path) -> None:
    path = tmp_path / "a.ply"
    normals = ["property float nx", "property float ny", "property float nz", "end_header"]
    np.testing.assert_array_equal(
        read_both(path, text(*HEAD, *AXES, *normals, "0 1 2 0 0 1", "3 4 5 nan nan nan")), POINTS
    )
    with pytest.raises(CloudError, match="point 1 has a number that is not finite"):
        read_cloud(path, normals=True)


def test_a_long_file_is_read_as_a_short_one(tmp_path: Path) -> None:
    """With two-byte line ends across the border of two blocks; a wrong line near the end is named."""
    lines = [f"{i}.25 {i} -{i}e0 {i % 256} {i} nan" for i in range(3000)]
    header = [line.replace("vertex 2", "vertex 3000") for line in COLOURED]
    points = read_both(tmp_path / "a.ply", text(*header, *lines, end="\r\n"))
    np.testing.assert_array_equal(points, [[i + 0.25, i, -i] for i in range(3000)])
    lines[2900] = lines[2900].replace("nan", "nam")
    assert refusal(tmp_path / "a.ply", text(*header, *lines, end="\r\n")).startswith(", line 2911: ")


@pytest.mark.parametrize("odd", ["\x1c", "\x85", "\xa0"])
def test_a_line_of_what_looks_blank_is_not_empty(tmp_path: Path, odd: str) -> None:
    lists = text(*HEAD, *AXES, *SEEN, "0 1 2", "3 4 5", "1 5 6", "?", "1 5 6")
    for content in (plain("0 1 2", "?", "3 4 5"), lists):
        assert ", line" in refusal(tmp_path / "a.ply", content.replace(b"?", odd.encode("latin-1")))
