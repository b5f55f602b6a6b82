"""Headers of PLY and PCD read in pieces: the same result for any pieces, and a limit for their length."""

from pathlib import Path

import pytest

from pointset.data.readers import headers
from pointset.data.readers.headers import read_header, whole_number
from pointset.errors import PointsetError

WORDS = [(1, ["ply"]), (3, ["comment", "end_header"]), (4, ["end"]), (5, ["end_header", "x"])]


@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
@pytest.mark.parametrize("size", range(1, 60))
def test_pieces_may_end_anywhere(size: int, end: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(headers, "FIRST_READ", size)
    text = end.join([b"ply", b" ", b"comment end_header", b"\tend", b"end_header\tx", b""])
    (tmp_path / "a.ply").write_bytes(text + b"\n1 2")
    header = read_header(tmp_path / "a.ply", "end_header")
    assert (header.first, header.lines, header.next_line) == (b"ply", WORDS, 6)
    assert header.start_of_numbers == len(text)
    assert header.text == len(text) + (end == b"\r")  # in a text, \r\n ends one line


@pytest.mark.parametrize(("bound", "value"), [("MOST_LINES", 4), ("MOST_BYTES", 20)])
def test_what_never_ends_is_another_file(
    bound: str, value: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"ply\na\nb\nc\nend_header\n"
    (tmp_path / "a.ply").write_bytes(text)
    monkeypatch.setattr(headers, bound, value + 1)
    assert read_header(tmp_path / "a.ply", "end_header").next_line == 6
    monkeypatch.setattr(headers, bound, value)
    with pytest.raises(PointsetError, match="a header that ends with end_header: it is another kind of file, or cut"):
        read_header(tmp_path / "a.ply", "end_header")


@pytest.mark.parametrize(
    ("word", "number"),
    [
        *[("0", 0), ("-0", 0), ("+00", 0), ("007", 7), ("+12", 12), ("0" * 30 + "5", 5), ("9" * 18, 10**18 - 1)],
        *[(word, None) for word in ("", "+", "-1", "1.0", "1e3", "1_0", " 1", "1\n", "\u0661", "1" + 18 * "0")],
    ],
)
def test_counts_are_whole_numbers(word: str, number: int | None) -> None:
    assert whole_number(word) == number
