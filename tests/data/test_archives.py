"""Unpacking: whole or not at all, nothing outside the folder, nothing that fills the disk."""

import os
import stat
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from pointset.data import archives
from pointset.data.archives import unpack
from pointset.errors import PointsetError

GOOD = {"Set/a/train/1.off": b"OFF", "Set/b/test/2.off": b"OFF", "README.txt": b"read me", "__MACOSX/Set/._1": b"x"}


def archive(folder: Path, files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "set.zip"
    with zipfile.ZipFile(path, "w", compression) as content:
        for name, data in files.items():
            content.writestr(name, data)
    return path


def test_the_folder_is_unpacked_and_the_rest_is_not(tmp_path: Path) -> None:
    path = archive(tmp_path, GOOD)
    unpack(path, tmp_path / "Set", progress=False)
    files = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {"set.zip", "Set/a/train/1.off", "Set/b/test/2.off"}
    assert (tmp_path / "Set/a/train/1.off").read_bytes() == b"OFF"


def link(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)
    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
    return entry


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("../outside.off", "is a path outside it"),
        ("Set/../../outside.off", "is a path outside it"),
        ("/tmp/outside.off", "is a path outside it"),
        ("..\\outside.off", "is a path outside it"),
        ("C:\\outside.off", "is a path outside it"),
        (link("Set/link.off"), "is a link or device"),
    ],
    ids=str,
)
def test_an_entry_that_leaves_the_folder_stops_everything(
    name: str | zipfile.ZipInfo, words: str, tmp_path: Path
) -> None:
    path = archive(tmp_path, GOOD)
    with zipfile.ZipFile(path, "a") as content:
        content.writestr(name, b"/etc/passwd")
    with pytest.raises(PointsetError, match=words):
        unpack(path, tmp_path / "Set", progress=False)
    assert [file.name for file in tmp_path.iterdir()] == ["set.zip"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, GOOD)
    with zipfile.ZipFile(path, "a") as content:
        content.writestr("Set/a/train/1.off", b"another")
    with pytest.raises(PointsetError, match=r"holds 'Set/a/train/1.off' twice"):
        unpack(path, tmp_path / "Set", progress=False)


def test_a_bomb_is_not_unpacked(tmp_path: Path) -> None:
    path = archive(tmp_path, {"Set/zeros.off": bytes(20_000_000)})
    assert path.stat().st_size < 200_000
    with pytest.raises(PointsetError, match=r"20,000,000 bytes in .* are more than any archive of shapes has"):
        unpack(path, tmp_path / "Set", progress=False)


def test_a_disk_without_room_is_found_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path, GOOD)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: SimpleNamespace(free=1))
    with pytest.raises(PointsetError, match=r"needs 6 bytes in .*, which has 1: make room"):
        unpack(path, tmp_path / "Set", progress=False)


@pytest.mark.parametrize("how", ["cut", "flipped", "no archive"])
def test_a_damaged_archive_leaves_nothing(how: str, tmp_path: Path) -> None:
    path = archive(tmp_path, {"Set/1.off": os.urandom(5000)}, zipfile.ZIP_STORED)
    content = bytearray(path.read_bytes())
    if how == "cut":
        content = content[:2000]
    elif how == "flipped":
        content[1000] ^= 1
    else:
        content = bytearray(b"<html>404</html>")
    path.write_bytes(content)
    with pytest.raises(PointsetError, match=r"set.zip cannot be unpacked .*: delete it and fetch it again"):
        unpack(path, tmp_path / "Set", progress=False)
    assert [file.name for file in tmp_path.iterdir()] == ["set.zip"]


def test_an_archive_of_something_else_is_named(tmp_path: Path) -> None:
    path = archive(tmp_path, {"Other/1.off": b"OFF", "notes.txt": b""})
    with pytest.raises(PointsetError, match=r"has no folder Set in it, only Other, notes.txt"):
        unpack(path, tmp_path / "Set", progress=False)


def test_what_a_killed_unpacking_left_is_removed(tmp_path: Path) -> None:
    path = archive(tmp_path, GOOD)
    left = tmp_path / ".Set.unpacking" / "Set" / "half.off"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"OF")
    unpack(path, tmp_path / "Set", progress=False)
    assert not (tmp_path / "Set" / "half.off").exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["Set", "set.zip"]
