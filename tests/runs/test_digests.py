"""Files with digests: every change is detected, a kill leaves an intact file, and a full disk is reported."""

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
from pointset.runs.atomic import write_atomically
from pointset.runs.claims import owned

REMEDY = "delete all and start again"


def listed(folder: Path) -> list[str]:
    return (folder / digests.SUMS).read_text().splitlines()


def test_the_list_is_one_that_sha256sum_checks(tmp_path):
    digests.write(tmp_path / "one.bin", b"1")
    digests.write_json(tmp_path / "two words.json", {"ü": [1, 2]})
    digests.write(tmp_path / "one.bin", b"one")
    assert listed(tmp_path)[0] == f"{hashlib.sha256(b'one').hexdigest()}  one.bin"
    assert len(listed(tmp_path)) == 2
    assert digests.read_json(tmp_path / "two words.json", REMEDY) == {"ü": [1, 2]}
    if shutil.which("sha256sum"):
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
        (
            lambda path: (path.parent / digests.SUMS).unlink(),
            [r"a\.json is not listed in the SHA256SUMS", REMEDY, r"sha256sum a\.json >> SHA256SUMS"],
        ),
        (
            lambda path: (path.parent / digests.SUMS).write_text("0 a.json\n"),
            ["SHA256SUMS is damaged, line 1 is not a digest and a name: restore it from a copy, or delete its folder"],
        ),
        (
            lambda path: (path.parent / digests.SUMS).write_bytes(b"\xff\n"),
            ["SHA256SUMS is damaged, it is not text: restore it from a copy, or delete its folder"],
        ),
        (
            lambda path: ((path.parent / digests.SUMS).unlink(), (path.parent / digests.SUMS).mkdir()),
            [r"SHA256SUMS cannot be read \(.+\): restore it from a copy, or delete its folder"],
        ),
    ],
)
def test_damage_is_one_sentence_with_the_file_and_what_to_do(damage, words, tmp_path):
    path = tmp_path / "a.json"
    digests.write_json(path, 1)
    damage(path)
    with pytest.raises(digests.DamagedError) as caught:
        digests.read_json(path, REMEDY)
    for word in words:
        assert re.search(word, str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_file_that_is_listed_by_hand_as_the_message_says_is_read(tmp_path):
    path = tmp_path / "of two words" / "it's a.json"
    path.parent.mkdir()
    path.write_text("[1]")
    with pytest.raises(digests.DamagedError) as caught:
        digests.read_json(path, REMEDY)
    subprocess.run(re.search("`(.*)`", str(caught.value))[1], shell=True, check=True)
    assert digests.read_json(path, REMEDY) == [1]


@pytest.mark.parametrize("content", [b"{", b"\xff", b"[" * 100_000, b""])
def test_a_whole_file_that_is_not_json_is_named(content, tmp_path):
    digests.write(tmp_path / "a.json", content)
    with pytest.raises(digests.DamagedError, match=r"a\.json does not hold JSON") as caught:
        digests.read_json(tmp_path / "a.json", REMEDY)
    assert len(str(caught.value)) < 300 + len(str(tmp_path))


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
def test_a_full_disk_is_told_and_the_old_file_stays(number, tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    digests.write_json(path, "old")

    def full(_):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patched:
        patched.setattr(atomic, "sync", full)
        with pytest.raises(
            PointsetError, match=rf"cannot be written \({os.strerror(number)}\): free some disk space and run"
        ):
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


def test_a_folder_has_one_owner(tmp_path):
    with owned(tmp_path / "new", "in use"), pytest.raises(PointsetError, match="in use"):  # noqa: SIM117
        with owned(tmp_path / "new", "in use"):
            pass
    with owned(tmp_path / "new", "in use"):
        pass


def test_a_removed_file_is_not_listed_any_more(tmp_path):
    for name in ("gone.txt", "kept.txt"):
        digests.write_text(tmp_path / name, name)
    (tmp_path / "gone.txt").unlink()  # as a kill leaves it
    digests.remove(tmp_path / "gone.txt")
    digests.remove(tmp_path / "never.txt")
    assert set(digests.read_list(tmp_path)) == {"kept.txt"}
    assert digests.read_text(tmp_path / "kept.txt", "") == "kept.txt"
