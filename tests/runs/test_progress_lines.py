"""Progress without a terminal: lines of text, at most one every half minute."""

import re
import time

import pytest

from pointset.errors import PointsetError
from pointset.runs import progress
from pointset.runs.progress import Board, Lines, Standing, followed, progress_bar


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


def test_the_remaining_time_uses_the_share_of_unfinished_units():
    lines = Lines("comparing", "run", 1, standing=lambda: Standing(0.2, 0.1, ["one: epoch 2", "two: begins"]))
    told = "comparing: 0 of 1 run done, 1 left, 20% of the work, about 0:08:00 to go; one: epoch 2; two: begins"
    assert lines.line(60.0) == told


@pytest.mark.parametrize(
    ("standing", "left"),
    [
        (Standing(0.2, 0.1), "about 0:08:00 to go"),
        (Standing(0.2, 0.1, longest=600.0), "about 0:10:00 to go"),
        (Standing(0.1, 0.1), ""),
        (Standing(1.0, 0.1), ""),
    ],
)
def test_the_remaining_time_is_at_least_that_of_the_longest_unit(standing, left):
    assert standing.left(60.0) == left


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


def test_work_in_long_units_reports_progress_without_updates(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress_bar("comparing", "run", 2, standing=_damaged):
        time.sleep(0.2)
    said = capsys.readouterr().err
    assert re.fullmatch(r"(comparing: 0 of 2 runs done, 2 left\n)+", said)


def _damaged() -> Standing:
    raise PointsetError("a file is damaged")


def test_a_terminal_has_a_bar(monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_bar("training", "step", 2, leave=False) as bar:
        assert not isinstance(bar, Lines)


def test_long_work_on_a_terminal_shows_what_is_being_done(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "LOOKED", 0.01)
    monkeypatch.setenv("COLUMNS", "200")
    shares = iter(range(100))
    with progress_bar(
        "comparing", "run", 2, standing=lambda: Standing(next(shares) / 100, 0.0, ["one\x1b[31m"])
    ) as bar:
        assert isinstance(bar, Board)
        bar.update()
        time.sleep(0.1)
        bar.write("a table")
    said = capsys.readouterr()
    assert said.out == ""
    assert re.search(r"comparing: 1 of 2 runs done, 1 left, \d+% of the work, about 0:00:0", said.err)
    assert "a table\n" in said.err
    assert r"one\x1b[31m" in said.err
    assert max(int(share) for share in re.findall(r"(\d+)%\|", said.err)) > 3, "it goes on looking"
