"""Progress without a terminal: lines of text, at most one every half minute."""

import pytest

from pointset.runs import progress
from pointset.runs.progress import Lines, followed, progress_bar


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (Lines("training", "step", 6000, 1000), "training: 1,000 of 6,000 steps done, 5,000 left"),
        (Lines("unpacking", "file", None), "unpacking: 0 files done"),
        (Lines("it.tar", "B", 2_500_000, 500_000, scaled=True), "it.tar: 500k of 2.50MB done, 2.00M left"),
    ],
)
def test_a_line_says_what_is_done_and_left(lines, words):
    assert lines.line(60.0) == words


def test_the_remaining_time_extrapolates_progress_since_the_start():
    lines = Lines("training", "step", 6000, 1000)
    lines.update(2000)
    assert lines.line(60.0).endswith("3,000 left, about 0:01:30 to go")


def test_a_line_is_written_every_half_minute(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    assert list(followed("ab\n", "reading\x1b[31m", "file", 3)) == ["a", "b", "\n"]
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(",")[0] for line in said] == [
        rf"reading\x1b[31m: {number} of 3 files done" for number in (1, 2, 3)
    ]
    monkeypatch.setattr(progress, "EVERY", 30.0)
    list(followed("ab", "reading", "file"))
    list(followed("ab", "reading", "file", show=False))
    assert capsys.readouterr().err == ""


def test_a_terminal_has_a_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_bar("training", "step", 2, leave=False) as bar:
        assert not isinstance(bar, Lines)
