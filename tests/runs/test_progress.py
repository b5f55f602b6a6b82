"""Progress: a bar on a terminal; elsewhere lines of text, at most one every half minute."""

import os
import re

import pytest

from pointset.runs import progress
from pointset.runs.progress import followed, progress_bar


@pytest.mark.parametrize(
    ("what", "unit", "total", "scaled", "line"),
    [
        ("training", "step", 6000, False, r"training: 3000 of 6000 steps done, about \d\d:\d\d to go"),
        ("embedding", "batch", 100_000, False, r"embedding: 3000 of 100000 batches done"),  # too early for an estimate
        ("unpacking\x1b[31m", "file", None, False, r"unpacking\\x1b\[31m: 3000 files done"),
        ("it.tar", "B", 25_000, True, r"it\.tar: 3\.00k of 25\.0k B done, about [\d:]+ to go"),
    ],
)
def test_a_line_says_what_is_done_and_how_long_the_rest_takes(what, unit, total, scaled, line, monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    with progress_bar(what, unit, total, done=1000, scaled=scaled, leave=False) as bar:
        bar.update(2000)
    (*_, last) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(line, last), last


def test_short_work_writes_nothing(capsys):
    assert list(followed("ab", "reading", "file", 2)) == ["a", "b"]
    assert list(followed("ab", "reading", "file", show=False)) == ["a", "b"]
    assert capsys.readouterr().err == ""


def test_a_terminal_that_does_not_know_its_size_has_a_bar(monkeypatch):
    terminal, end = os.openpty()  # of 0 columns and 0 rows
    os.set_blocking(terminal, False)
    with os.fdopen(end, "w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        list(followed("ab", "reading", "file", 2))
        stderr.flush()
        assert b"reading: " in os.read(terminal, 1000)
    os.close(terminal)


def test_the_bar_of_a_terminal_estimates_no_time_before_a_twentieth_is_done(monkeypatch, capsys):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_bar("training", "step", 100) as bar:
        bar.update(4)
        assert "<?" in str(bar)
        bar.update(1)
        assert re.search(r"<\d\d:\d\d", str(bar))
        bar.set_postfix_str("loss 0.5")
        bar.update(95)
    assert "100%" in capsys.readouterr().err


def test_batches_count_as_the_shapes_that_are_in_them(monkeypatch, capsys):
    monkeypatch.setattr(progress, "EVERY", 0.0)
    list(followed(["ab", "cde"], "embedding", "shape", 5, size=len))
    assert "embedding: 5 of 5 shapes done" in capsys.readouterr().err
