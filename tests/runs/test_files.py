"""Files that are complete at every moment, damage that is one sentence, and tables without formulas."""

import csv
import errno
import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from pointset import PointsetError, judge
from pointset.comparison.judge import read_tables
from pointset.evaluation.embedding import Embedded
from pointset.evaluation.shape_files import Guess, write_guesses
from pointset.runs import atomic, records
from pointset.runs.atomic import check_writable, new_folder, write_atomically, write_for_user
from pointset.runs.files import read_file
from pointset.runs.locks import lock_folder
from pointset.runs.records import write_or_compare
from pointset.runs.spreadsheets import as_csv, read_csv

REMEDY = "delete all and start again"
BAD = (b"", b"{", b"\xff", b"[" * 100_000)


def test_a_file_of_the_user_is_written_and_what_killed_processes_left_of_it_removed(tmp_path):
    path, killed = tmp_path / "page[1].html", 2**22 + 1  # above the largest number of a process
    names = (f"page[1].html.{killed}", f"page[1].html.{os.getppid()}", f"page1.html.{killed}")
    left, running, others = (tmp_path / f".{name}.tmp" for name in names)
    for file in (left, running, others):
        file.touch()
    assert write_for_user(path, lambda temporary: temporary.write_bytes(b"page")) == path
    assert path.read_bytes() == b"page"
    assert set(tmp_path.iterdir()) == {path, running, others}


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file/page.html", "{}/file is a file, not a folder"),
        ("file/new/page.html", "{}/file is a file, not a folder"),
        ("link/page.html", "{}/link is a broken link, not a folder"),
        ("folder", "it is a folder"),
        (f"{'x' * 300}/page.html", "x does not exist"),
        ("no/such/page.html", "the folder {}/no/such does not exist"),
    ],
)
def test_the_error_for_an_unwritable_path_names_the_cause(place, why, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    with pytest.raises(PointsetError) as caught:
        check_writable(tmp_path / place)
    assert f"{tmp_path / place} cannot be written" in str(caught.value)
    assert why.format(tmp_path) in str(caught.value)


def test_files_are_flushed_before_they_are_renamed_and_folders_with_what_is_in_them(tmp_path, monkeypatch):
    flushed, paths = [], [tmp_path / "a.bin", tmp_path / "new", tmp_path / "new" / "b.bin"]

    def flush(number):
        flushed.append((os.fstat(number).st_ino, [path.exists() for path in paths[:2]]))

    monkeypatch.setattr(os, "fsync", flush)
    write_atomically(paths[0], lambda temporary: temporary.write_bytes(b"1"))
    with new_folder(paths[1]) as folder:
        (folder / "b.bin").write_bytes(b"2")
    file, folder, inside = (path.stat().st_ino for path in paths)
    assert flushed == [(file, [False, False]), (inside, [True, False]), (folder, [True, False])]


def test_a_folder_that_is_not_finished_does_not_get_its_name(tmp_path):
    (tmp_path / ".new.1.tmp" / "of a killed process").mkdir(parents=True)
    with suppress(KeyboardInterrupt), new_folder(tmp_path / "new.1") as folder:
        assert list(folder.iterdir()) == []
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.unlink(), r"a\.json is missing"),
        (lambda path: (path.unlink(), path.mkdir()), r"a\.json cannot be read"),
        *((lambda path, content=content: path.write_bytes(content), r"a\.json does not hold JSON") for content in BAD),
    ],
)
def test_damage_is_one_sentence_with_the_file_and_what_to_do(damage, words, tmp_path):
    path = tmp_path / "of two words" / "it's a.json"
    records.write_json(path, 1)
    damage(path)
    with pytest.raises(records.DamagedError, match=rf"{words}.*{REMEDY}") as caught:
        records.read_json(path, REMEDY)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 450 + 2 * len(str(tmp_path))


def test_a_folder_of_another_description_is_refused_with_the_first_difference(tmp_path):
    file, own = tmp_path / "run.json", {"model": {"dim": 8, "heads": (1, 2)}, "seed": 0}
    write_or_compare(file, own, ["model"], "run", write=False)
    assert not file.exists()
    for description in (own, own, own | {"seed": 1}):
        write_or_compare(file, description, ["model"], "run")
    with pytest.raises(PointsetError, match=r"holds another run \(model\.dim is 8 there and 9 here\)"):
        write_or_compare(file, {"model": {"dim": 9}}, ["model"], "run")


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("moment", range(2))
def test_killed_at_any_moment_the_old_or_the_new_file_is_whole(moment, tmp_path, monkeypatch):
    """A write is a flush and a rename."""
    path = tmp_path / "a.json"
    records.write_json(path, "old")
    calls = iter(range(100))

    def deadly(plain):
        def call(*arguments):
            if next(calls) == moment:
                raise KilledError
            return plain(*arguments)

        return call

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "sync", deadly(atomic.sync))
        patched.setattr(Path, "replace", deadly(Path.replace))
        with pytest.raises(KilledError):
            records.write_json(path, "new")
    assert records.read_json(path, REMEDY) == "old"
    records.write_json(path, "newest")
    assert records.read_json(path, REMEDY) == "newest"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named_and_the_old_file_stays(number, tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    records.write_json(path, "old")

    def full(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "sync", full)
        with pytest.raises(PointsetError, match=rf"cannot be written \({os.strerror(number)}\)"):
            records.write_json(path, "new")
    assert records.read_json(path, REMEDY) == "old"
    assert not list(tmp_path.glob(".*.tmp"))


@pytest.mark.parametrize("error", [RuntimeError("[enforce fail at inline_container.cc:664]"), OSError("9 requested")])
def test_a_full_disk_is_detected_even_if_a_library_does_not_report_it(error, tmp_path, monkeypatch):
    def write(_):
        raise error

    with pytest.raises(type(error)):
        write_atomically(tmp_path / "a.pt", write)
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(100, 100, 0))
    with pytest.raises(PointsetError, match=r"a\.pt cannot be written"):
        write_atomically(tmp_path / "a.pt", write)


def test_a_folder_has_one_owner_who_removes_what_killed_processes_left(tmp_path):
    for _ in range(2):
        (tmp_path / f".left.json.{2**22 + 1}.tmp").touch()
        with lock_folder(tmp_path, "in use"), pytest.raises(PointsetError, match="in use"):  # noqa: SIM117
            with lock_folder(tmp_path, "in use"):
                pass
        assert {path.name for path in tmp_path.iterdir()} == {".lock"}


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero"), Path.mkdir])
def test_only_regular_files_are_read(make, tmp_path):
    """A pipe may never end, and a device fills the memory."""
    make(tmp_path / "odd")
    with pytest.raises(PointsetError, match=r"odd|/dev/zero"):
        read_file(tmp_path / "odd")


def test_a_huge_file_is_refused(tmp_path):
    (tmp_path / "huge").touch()
    os.truncate(tmp_path / "huge", 5 << 30)  # needs no disk space
    with pytest.raises(PointsetError, match="huge: has 5,368,709,120 bytes"):
        read_file(tmp_path / "huge")


TEXTS = (
    *("=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)", "-2+3", "\tx", "\rx", "\nx"),
    *("chair", "'quoted", "'=1", "''-x", "None", "NA", "ü ♥", 'a "b", c'),
)


def has_formula(path: Path) -> bool:
    """True if a spreadsheet would compute a cell of the file: one that begins so and is not a number."""
    with path.open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row if not re.fullmatch(r"[-+]?[\d.]+", cell)]
    return any(cell.startswith(tuple("=+@\t\r\n-")) for cell in cells)


@pytest.mark.parametrize("number", [-4.6, "-4.6", "+1e3", 7, None])
def test_numbers_stay_numbers(number):
    assert as_csv([{"n": number}]).splitlines()[1].strip('"') == ("" if number is None else str(number))


def test_texts_of_every_table_are_no_formulas_and_read_back_unchanged(tmp_path):
    rows = [{"model": text, "@SUM": text, "accuracy": "-0.5"} for text in TEXTS]
    results, guessed, embedded = (tmp_path / f"{name}.csv" for name in ("results", "guessed", "embedded"))
    results.write_bytes(as_csv(rows).encode())
    assert read_csv(results) == rows
    assert as_csv([{"class": "\udcff"}]) == "class\n\\udcff\n"
    write_guesses(guessed, [Guess(f"{text}/a.off", ((text, 0.9), ("x", 0.1)), 0.3, 16, text) for text in TEXTS])
    table, names = read_tables([guessed]), [*TEXTS]
    assert table["label"].tolist() == table["prediction"].tolist() == names
    assert judge(guessed).rows[0].mean == 1
    Embedded("=model", names, names, np.ones((len(names), 2), np.float32), names).save(embedded)
    assert not any(map(has_formula, (results, guessed, embedded)))
