"""Lines of a text that is read in blocks: the same for any blocks."""

import io

import pytest

from pointset.data.readers import text_lines
from pointset.data.readers.text_lines import Lines
from pointset.errors import PointsetError

TEXT = b"one\r\n2 2.5e-1\r\r\n\n\tthree // #\xff\n#4\rfive\n"
LINES = ["one", "2 2.5e-1", "", "", "\tthree // #\xff", "#4", "five"]
WITHOUT_COMMENTS = ["one", "2 2.5e-1", "", "", "\tthree ", "", "five"]


def taken(lines: Lines, most: int) -> tuple[list[int], list[str]]:
    numbers, found = [], []
    while (some := lines.take(most))[1]:
        assert len(some[1]) <= most
        numbers += range(some[0], some[0] + len(some[1]))
        found += some[1]
    return numbers, found


@pytest.mark.parametrize(
    "text", [TEXT, TEXT[:-1], TEXT[:-1] + b"\r", TEXT[:-1] + b"\r\n"], ids=["LF", "no", "CR", "CR LF"]
)
@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("size", range(1, 12))
def test_blocks_may_end_anywhere(size: int, most: int, text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "BLOCK", size)
    lines = Lines(io.BytesIO(text), 5)
    assert taken(lines, most) == ([5, 6, 7, 8, 9, 10, 11], LINES)
    assert lines.odd == {*b"onthrfiv/#\xff"}
    lines = Lines(io.BytesIO(text), comments=True)
    assert taken(lines, most) == ([1, 2, 3, 4, 5, 6, 7], WITHOUT_COMMENTS)
    assert lines.odd == {*b"onthrfiv"}


@pytest.mark.parametrize("size", [1, 7, 100])
@pytest.mark.parametrize("end", [b"\n", b"\r", b"\r\n"])
def test_a_line_without_end_is_named(size: int, end: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_lines, "BLOCK", size)
    monkeypatch.setattr(text_lines, "LONGEST_LINE", 20)
    text = b"1" + end + b"2" + end
    assert taken(Lines(io.BytesIO(text + b"3" * 20)), 1)[1] == ["1", "2", "3" * 20]
    with pytest.raises(PointsetError, match=r"^line 9: expected at most 20 characters in a line"):
        taken(Lines(io.BytesIO(text + b"3" * 1000), 7), 1)
