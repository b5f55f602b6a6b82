"""PCD files: complete headers, exact sizes, and compressed points that cannot fill the memory."""

import re
import struct
from pathlib import Path

import numpy as np
import pytest
from cloud_files import read_both, refusal

from pointset.data import open_scan, read_cloud
from pointset.data.readers.clouds import CloudError

POINTS = [[0, 1, 2], [3, 4, 5]]
HEADER = """# .PCD v0.7
VERSION 0.7
FIELDS x y z ring
SIZE 4 4 4 1
TYPE F F F U
COUNT 1 1 1 2
WIDTH 2
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS 2
DATA {}
"""
TEXT = (HEADER.format("ascii") + "0 1 2 7 8\n3 4 5 7 255\n").encode()
RECORDS = np.zeros(2, [("xyz", "<f4", 3), ("ring", "u1", 2)])
RECORDS["xyz"] = POINTS
BINARY = HEADER.format("binary").encode() + RECORDS.tobytes()
COLUMNS = np.array(POINTS, "<f4").T.tobytes() + bytes(4)


def packed(content: bytes, size: int = len(COLUMNS), full: int = len(COLUMNS)) -> bytes:
    """Compressed as one literal run."""
    run = bytes([len(content) - 1]) + content
    return HEADER.format("binary_compressed").encode() + struct.pack("<2I", size + 1, full) + run


GOOD = {
    "text": TEXT,
    "empty lines": TEXT.replace(b"\n", b"\n\n"),
    "CR LF": TEXT.replace(b"\n", b"\r\n"),
    "no COUNT": TEXT.replace(b"COUNT 1 1 1 2\n", b"").replace(b" 7 ", b" "),
    "no VIEWPOINT": TEXT.replace(b"VIEWPOINT 0 0 0 1 0 0 0\n", b""),
    "another order": TEXT.replace(b"VERSION 0.7\n", b"").replace(b"DATA", b"VERSION .7\nDATA"),
    "padding": TEXT.replace(b"x y z ring", b"x y z _"),
    "binary": BINARY,
    "a page": BINARY + bytes(4000),
    "packed": packed(COLUMNS),
    "packed, a page": packed(COLUMNS) + bytes(4000),
}


@pytest.mark.parametrize("name", GOOD)
def test_every_unambiguous_file_is_read(tmp_path: Path, name: str) -> None:
    np.testing.assert_array_equal(read_both(tmp_path / "a.pcd", GOOD[name]), POINTS)


def test_whole_numbers_of_64_bits(tmp_path: Path) -> None:
    content = TEXT.replace(b"SIZE 4 4 4 1", b"SIZE 8 8 8 8").replace(b"TYPE F F F U", b"TYPE I I U U")
    content = content.replace(b"7 8", b"18446744073709551615 0")
    np.testing.assert_array_equal(read_both(tmp_path / "a.pcd", content), POINTS)
    message = refusal(tmp_path / "a.pcd", content.replace(b"551615", b"551616"))
    assert ", line 12: " in message
    assert "18446744073709551616" in message


HEADERS = {
    "VERSION 0.7": ("VERSION 7", "'7'"),
    "VERSION 0.7\n": ("", "expected VERSION in"),
    "FIELDS x y z ring": ("FIELDS x y w ring", "'x y w ring'"),
    "FIELDS": ("FIALDS", ", line 3: .*'FIALDS'"),
    "x y z ring": ("x y z x", "two fields called 'x'"),
    "y z ring": ("y z", "a SIZE, a TYPE and a COUNT"),
    "SIZE 4 4 4 1": ("SIZE 4 4 4", "a SIZE, a TYPE and a COUNT"),
    "SIZE 4 4": ("SIZE 2 4", "a SIZE, a TYPE and a COUNT"),
    "TYPE F F F U": ("TYPE F F F X", "a SIZE, a TYPE and a COUNT"),
    "COUNT 1 1 1 2": ("COUNT 1 1 1 0", "a SIZE, a TYPE and a COUNT"),
    "1 1 1 2": ("1 1 1 9999999999", "at most 65,536 numbers"),
    "COUNT 1 1": ("COUNT 2 1", "COUNT of 1"),
    "COUNT": ("SIZE", ", line 6: .*SIZE only once"),
    "WIDTH 2": ("WIDTH 3", "WIDTH 3 and HEIGHT 1 and POINTS 2"),
    "HEIGHT 1": ("HEIGHT -1", "a number after HEIGHT"),
    "POINTS 2": ("POINTS 2 2", "a number after POINTS"),
    "VIEWPOINT 0": ("VIEWPOINT", "7 numbers after VIEWPOINT"),
    "VIEWPOINT 0 0": ("VIEWPOINT 0 x", "found 'x' after VIEWPOINT"),
    "DATA": ("DATO", "ends with DATA"),
}


@pytest.mark.parametrize("kind", ["ascii", "binary"])
@pytest.mark.parametrize("old", HEADERS)
def test_what_is_wrong_in_a_header(tmp_path: Path, old: str, kind: str) -> None:
    new, words = HEADERS[old]
    content = TEXT if kind == "ascii" else BINARY
    assert old.encode() in content
    message = refusal(tmp_path / "a.pcd", content.replace(old.encode(), new.encode(), 1))
    assert re.search(words, message), message


BAD_FILES = {
    "unknown data": (TEXT.replace(b"ascii", b"zip"), "'zip'"),
    "no data": (TEXT.replace(b" ascii", b""), "''"),
    "cut header": (TEXT[: TEXT.index(b"ascii")], "ends with DATA"),
    "cut": (TEXT[: TEXT.rindex(b"3 4")], "expected 2 points, as its header says, found 1"),
    "surplus": (TEXT + b"6 7 8 9 9\n", ", line 14: expected the end"),
    "out of range": (TEXT.replace(b"255", b"256"), ", line 13: .* 0 to 255, found '256'"),
    "an organised cloud": (TEXT.replace(b"4 5", b"nan nan"), ", line 13: .*'nan'"),
    "binary, cut": (BINARY[:-1], "cut off"),
    "binary, surplus": (BINARY + b"\0\1", "as its header says, found"),
    "binary, many zeros": (BINARY + bytes(1 << 16), "as its header says, found"),
    "binary, lying": (
        BINARY.replace(b"WIDTH 2", b"WIDTH 9999999999").replace(b"S 2", b"S 9999999999"),
        "expected 140,000,000,",
    ),
    "packed, cut": (packed(COLUMNS)[:-1], "cut off"),
    "packed, sizes": (packed(COLUMNS, size=0xFFFFFF00), "cut off"),
    "packed, other size": (packed(COLUMNS, full=29), "cut off"),
    "packed, surplus": (packed(COLUMNS) + b"\1", "found more bytes"),
    "packed, damaged": (
        packed(COLUMNS[:-1], size=len(COLUMNS) - 1),
        "28 bytes in 28 compressed ones: they are damaged",
    ),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_what_is_not_as_announced_is_refused(tmp_path: Path, name: str) -> None:
    content, words = BAD_FILES[name]
    message = refusal(tmp_path / "a.pcd", content)
    assert re.search(words, message), message


@pytest.mark.parametrize("kind", ["packed", "binary"])
def test_a_signalling_nan_is_refused_without_a_warning(tmp_path: Path, kind: str) -> None:
    """Converting it to float64 warns."""
    signalling = b"\1\0\xa0\x7f"
    content = packed(signalling + COLUMNS[4:])
    if kind == "binary":
        header = HEADER.format("binary").replace("SIZE 4 4 4 1", "SIZE 4 4 8 1")
        content = header.encode() + 2 * (signalling + bytes(14))
    assert "point 0 has a number that is not finite" in refusal(tmp_path / "a.pcd", content)


COLORS = np.array([[255, 128, 1], [0, 64, 2]], np.uint8)
COLORED = """VERSION 0.7
FIELDS x y {} z
SIZE 4 4 4 4
TYPE F F {} F
WIDTH 2
HEIGHT 1
POINTS 2
DATA {}
"""


@pytest.mark.parametrize("data", ["ascii", "binary", "binary_compressed"])
@pytest.mark.parametrize(("field", "kind", "alpha"), [("rgb", "F", 0), ("rgb", "U", 0), ("rgba", "U", 255)])
def test_packed_colors_are_three_shares(tmp_path: Path, field: str, kind: str, alpha: int, data: str) -> None:
    """As in PointXYZRGB of the Point Cloud Library: the bits 0xAARRGGBB of a float, or of an integer."""
    red, green, blue = COLORS.T.astype(np.uint32)
    bits = np.uint32(alpha) << 24 | red << 16 | green << 8 | blue
    numbers = bits.view(np.float32) if kind == "F" else bits
    x, y, z = np.array(POINTS, np.float32).T
    head = COLORED.format(field, kind, data).encode()
    rows = [*zip(x, y, numbers, z, strict=True)]
    if data == "ascii":
        content = head + "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    elif data == "binary":
        content = head + b"".join(number.tobytes() for row in rows for number in row)
    else:
        columns = b"".join(column.tobytes() for column in (x, y, numbers, z))
        run = bytes([len(columns) - 1]) + columns
        content = head + struct.pack("<2I", len(run), len(columns)) + run
    np.testing.assert_array_equal(read_both(tmp_path / "a.pcd", content), POINTS)
    pieces = open_scan(tmp_path / "a.pcd", piece=1, features=("colors", "blue"))()
    shares = COLORS / 255
    np.testing.assert_allclose(np.concatenate(list(pieces))[:, 3:], np.column_stack([shares, shares[:, 2]]), rtol=1e-6)
    with pytest.raises(CloudError, match=rf"three colors in one number in its field {field}: .* feature colors"):
        open_scan(tmp_path / "a.pcd", features=(field,))


def test_a_text_and_numbers_that_are_not_finite_are_refused_with_the_same_advice(tmp_path: Path) -> None:
    head = COLORED.format("curvature", "F", "ascii")
    (tmp_path / "a.pcd").write_text(head + "0 1 0 2\n3 nan 4 5\n")
    with pytest.raises(
        CloudError, match=r"a\.pcd, line 10: expected a finite number, found 'nan': leave the point out"
    ):
        read_cloud(tmp_path / "a.pcd")


def test_colors_that_a_text_calls_nan_are_refused(tmp_path: Path) -> None:
    """The Point Cloud Library writes "nan" for opaque colours whose bits are a NaN."""
    (tmp_path / "a.pcd").write_text(COLORED.format("rgb", "F", "ascii") + "0 1 0 2\n3 4 nan 5\n")
    assert len(read_cloud(tmp_path / "a.pcd").points) == 2
    with pytest.raises(CloudError, match=r"line 10: .*'nan'"):
        open_scan(tmp_path / "a.pcd", features=("colors",))
