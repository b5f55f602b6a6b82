"""Files that are complete at every moment, and their digests: every change is detected, a kill leaves a whole file."""

import errno
import hashlib
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from damage import flipped

from pointset.errors import PointsetError
from pointset.runs import atomic, digests
from pointset.runs.atomic import check_writable, new_folder, write_atomically, write_for_user
from pointset.runs.claims import owned

REMEDY = "delete all and start again"


def listed(folder: Path) -> list[str]:
    return (folder / digests.SUMS).read_text().splitlines()


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


def test_the_list_is_one_that_sha256sum_checks(tmp_path):
    digests.write(tmp_path / "one.bin", b"1")
    digests.write_json(tmp_path / "two words.json", {"ü": [1, 2]})
    digests.write(tmp_path / "one.bin", b"one")
    assert listed(tmp_path)[0] == f"{hashlib.sha256(b'one').hexdigest()}  one.bin"
    assert digests.read_json(tmp_path / "two words.json", REMEDY) == {"ü": [1, 2]}
    digests.write(tmp_path / "other.bin", b"1")
    digests.remove(tmp_path / "other.bin")
    digests.remove(tmp_path / "never.bin")
    assert set(digests.read_list(tmp_path)) == {"one.bin", "two words.json"}
    assert len(listed(tmp_path)) == 2
    if shutil.which("sha256sum") is None:
        pytest.skip("no sha256sum: install coreutils")
    subprocess.run(["sha256sum", "--strict", "-c", digests.SUMS], cwd=tmp_path, check=True, capture_output=True)


def test_any_flipped_bit_of_a_file_or_its_list_is_seen(tmp_path):
    path, sums, random = tmp_path / "numbers.json", tmp_path / digests.SUMS, np.random.default_rng(0)
    digests.write_json(path, {"accuracy": 0.9215})
    for file in (path, sums):
        content = file.read_bytes()
        for _ in range(100):
            file.write_bytes(flipped(content, random))
            with suppress(digests.DamagedError):
                assert digests.read_json(path, REMEDY) == {"accuracy": 0.9215}
                assert file is sums, "a change of the list may have no effect, such as another kind of newline"
        file.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda path: path.write_bytes(b"edited"), [r"a\.json has changed since it was written", REMEDY]),
        (lambda path: path.unlink(), [r"a\.json is missing", REMEDY]),
        (lambda path: (path.unlink(), path.mkdir()), [r"a\.json cannot be read", REMEDY]),
        (lambda path: (path.parent / digests.SUMS).unlink(), [r"a\.json is not listed in the SHA256SUMS", REMEDY]),
        (lambda path: (path.parent / digests.SUMS).write_text("0 it's a.json\n"), ["SHA256SUMS is damaged, line 1"]),
        (lambda path: (path.parent / digests.SUMS).write_bytes(b"\xff\n"), ["SHA256SUMS cannot be read", "delete"]),
        (
            lambda path: ((path.parent / digests.SUMS).unlink(), (path.parent / digests.SUMS).mkdir()),
            [r"SHA256SUMS cannot be read", "delete its folder"],
        ),
        (lambda path: digests.write(path, b"{"), [r"a\.json does not hold JSON", REMEDY]),
        (lambda path: digests.write(path, b"\xff"), [r"a\.json does not hold JSON", REMEDY]),
        (lambda path: digests.write(path, b"[" * 100_000), [r"a\.json does not hold JSON", REMEDY]),
    ],
)
def test_damage_is_one_sentence_with_the_file_and_what_to_do(damage, words, tmp_path):
    path = tmp_path / "of two words" / "it's a.json"
    digests.write_json(path, 1)
    damage(path)
    with pytest.raises(digests.DamagedError) as caught:
        digests.read_json(path, REMEDY)
    for word in words:
        assert re.search(word, str(caught.value))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 450 + 2 * len(str(tmp_path))
    if command := re.search("`(cd .*)`", str(caught.value)):
        subprocess.run(command[1], shell=True, check=True)
        assert digests.read_json(path, REMEDY) == 1, "listed by hand"


class KilledError(BaseException):
    pass


@pytest.mark.parametrize("moment", range(6))
def test_killed_at_any_moment_the_old_or_the_new_file_is_whole(moment, tmp_path, monkeypatch):
    """A write is three renames, each after a flush: the list with both digests, the file, the list with the new one."""
    path = tmp_path / "a.json"
    digests.write_json(path, "old")
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
            digests.write_json(path, "new")
    assert digests.read_json(path, REMEDY) == ("old" if moment < 4 else "new")
    digests.write_json(path, "newest")
    assert digests.read_json(path, REMEDY) == "newest"
    assert len(listed(tmp_path)) == 1


READ = """
import sys
from contextlib import suppress
from pathlib import Path
from pointset.runs import digests
path = Path(sys.argv[1])
print("ready", flush=True)
seen = set()
while (found := digests.read_json(path, "-")) != "end":
    seen.add(len(found))
assert len(seen) > 1, seen
"""


def test_a_reader_beside_a_writer_never_takes_a_whole_file_for_a_damaged_one(tmp_path):
    path = tmp_path / "a.json"
    digests.write_json(path, "")
    reader = subprocess.Popen([sys.executable, "-c", READ, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout.readline() == b"ready\n"
    for length in range(300):
        digests.write_json(path, "x" * length)
    digests.write_json(path, "end")
    assert reader.communicate(timeout=60)[1] == b""
    assert reader.returncode == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_named_and_the_old_file_stays(number, tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    digests.write_json(path, "old")

    def full(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "sync", full)
        with pytest.raises(PointsetError, match=rf"cannot be written \({os.strerror(number)}\)"):
            digests.write_json(path, "new")
    assert digests.read_json(path, REMEDY) == "old"
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
        with owned(tmp_path, "in use"), pytest.raises(PointsetError, match="in use"):  # noqa: SIM117
            with owned(tmp_path, "in use"):
                pass
        assert {path.name for path in tmp_path.iterdir()} == {".lock"}
