"""Unpacking: complete or not at all, and nothing outside the folder."""

import contextlib
import gzip
import io
import shutil
import tarfile
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from damage import damaged

from pointset.data.catalogue import archives
from pointset.data.catalogue.archives import unpack
from pointset.errors import PointsetError

GOOD = {"Set/a/train/1.off": b"OFF", "Set/b/test/2.off": b"OFF", "README.txt": b"read me", "__MACOSX/Set/._1": b"x"}


def tarball(folder: Path, files: dict[str, bytes], mode: str = "gz", *others: tarfile.TarInfo) -> Path:
    path = folder / f"set.tar.{mode}"
    with tarfile.open(path, f"w:{mode}") as content:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            content.addfile(entry, io.BytesIO(data))
        for entry in others:
            content.addfile(entry)
    return path


def archive(folder: Path, files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "set.zip"
    with zipfile.ZipFile(path, "w", compression) as content:
        for name, data in files.items():
            content.writestr(name, data)
    return path


Pack = Callable[[Path, dict[str, bytes]], Path]


@pytest.mark.parametrize("pack", [archive, *(partial(tarball, mode=mode) for mode in ("", "gz", "bz2", "xz"))])
def test_the_folder_is_unpacked_and_the_rest_is_not(tmp_path: Path, pack: Pack) -> None:
    path = pack(tmp_path, GOOD)
    unpack(path, tmp_path / "Set", progress=False)
    files = {file.relative_to(tmp_path).as_posix() for file in tmp_path.rglob("*") if file.is_file()}
    assert files == {path.name, "Set/a/train/1.off", "Set/b/test/2.off"}
    assert (tmp_path / "Set/a/train/1.off").read_bytes() == b"OFF"


@pytest.mark.parametrize(
    "files",
    [
        {"data/Set/1.npy": b"1", "data/Set/deep/2.npy": b"2", "data/notes.txt": b""},
        {"1.npy": b"1", "2.npy": b"2", "__MACOSX/._1.npy": b"x"},
        {"./Set/1.npy": b"1", "Other/Set/3.npy": b"3"},
    ],
    ids=["in another folder", "in no folder", "at the top and elsewhere"],
)
@pytest.mark.parametrize("pack", [archive, tarball])
def test_the_folder_is_found_where_it_is(tmp_path: Path, pack: Pack, files: dict[str, bytes]) -> None:
    unpack(pack(tmp_path, files), tmp_path / "Set", progress=False)
    assert (tmp_path / "Set/1.npy").read_bytes() == b"1"
    assert not list((tmp_path / "Set").rglob("3.npy"))
    assert not list((tmp_path / "Set").rglob("._1.npy"))


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a/Set/1.off": b"", "b/Set/1.off": b""}, "2 folders Set in it, in a, b"),
        ({"Other/1.off": b"OFF", "notes.txt": b""}, "no folder Set in it, only Other, notes.txt"),
        ({"Set/a/b.off": b"", "Set/a": b""}, "cannot be unpacked"),
    ],
)
def test_an_archive_of_something_else_is_named(tmp_path: Path, files: dict[str, bytes], words: str) -> None:
    with pytest.raises(PointsetError, match=rf"set.zip .*{words}"):
        unpack(archive(tmp_path, files), tmp_path / "Set", progress=False)


@pytest.mark.parametrize(
    ("kind", "target"), [(tarfile.SYMTYPE, "/etc/passwd"), (tarfile.LNKTYPE, "../x"), (tarfile.FIFOTYPE, "")]
)
def test_links_to_other_folders_and_devices_stop_everything(tmp_path: Path, kind: bytes, target: str) -> None:
    entry = tarfile.TarInfo("Set/link.off")
    entry.type, entry.linkname = kind, target
    path = tarball(tmp_path, GOOD, "gz", entry)
    with pytest.raises(PointsetError, match=r"set.tar.gz cannot be unpacked .*Set/link.off"):
        unpack(path, tmp_path / "Set", progress=False)
    assert [file.name for file in tmp_path.iterdir()] == ["set.tar.gz"]


@pytest.mark.parametrize("pack", [archive, tarball])
@pytest.mark.parametrize("name", ["../outside.off", "Set/../../outside.off", "/tmp/outside.off"])
def test_nothing_is_unpacked_outside_the_folder(name: str, pack: Pack, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with contextlib.suppress(PointsetError):
        unpack(pack(home, {**GOOD, name: b"x"}), home / "Set", progress=False)
    assert not list(tmp_path.glob("outside.off"))
    assert not Path("/tmp/outside.off").exists()
    assert {path.name for path in home.iterdir()} <= {"Set", "set.zip", "set.tar.gz"}


def test_a_disk_without_room_is_found_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = archive(tmp_path, GOOD)
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: SimpleNamespace(free=1))
    with pytest.raises(PointsetError, match=r"set.zip needs 14 bytes.* 1 are free.*make room"):
        unpack(path, tmp_path / "Set", progress=False)


def test_a_web_page_is_not_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "set.zip"
    path.write_bytes(b"<html>404</html>")
    with pytest.raises(PointsetError, match=r"set.zip cannot be unpacked .*: delete it and fetch it again"):
        unpack(path, tmp_path / "Set", progress=False)


@pytest.mark.parametrize("pack", [partial(archive, compression=zipfile.ZIP_STORED), archive, tarball])
def test_a_damaged_archive_is_refused_or_unpacked_right(pack: Pack, tmp_path: Path) -> None:
    files = {**GOOD, "Set/c.off": np.random.default_rng(0).bytes(100), "Set/none.txt": b""}
    path = pack(tmp_path, files)
    right = {name.removeprefix("Set/"): data for name, data in files.items() if name.startswith("Set/")}
    whole, words = path.read_bytes(), []
    for seed in range(80):
        path.write_bytes(damaged(whole, seed))
        try:
            unpack(path, tmp_path / "Set", progress=False)
            found = {file.relative_to(tmp_path / "Set").as_posix(): file for file in (tmp_path / "Set").rglob("*.*")}
            assert {name: file.read_bytes() for name, file in found.items()} == right, f"unpacked wrong, seed {seed}"
            shutil.rmtree(tmp_path / "Set")
        except PointsetError as error:
            words.append(str(error))
        assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert len(words) > 40  # of others only a date and the like is damaged
    assert all(path.name in one for one in words)


@pytest.mark.parametrize("mode", ["", "gz"])
@pytest.mark.parametrize("how", ["cut", "damaged"])
def test_a_tar_file_that_ends_early_is_not_taken_for_whole(how: str, mode: str, tmp_path: Path) -> None:
    path = tarball(tmp_path, {"Set/1.off": b"1" * 600, "Set/2.off": b"2" * 600}, "")
    content = bytearray(path.read_bytes())
    second = 3 * tarfile.BLOCKSIZE  # a name and two blocks of bytes
    if how == "cut":
        content = content[:second]
    else:
        content[second] ^= 255
    path.write_bytes(gzip.compress(content) if mode else content)
    with pytest.raises(PointsetError, match=r"cannot be unpacked \(it is damaged, or cut off\)"):
        unpack(path, tmp_path / "Set", progress=False)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_what_a_killed_unpacking_left_is_removed(tmp_path: Path) -> None:
    path = archive(tmp_path, GOOD)
    left = tmp_path / ".Set.unpacking" / "Set" / "half.off"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"OF")
    unpack(path, tmp_path / "Set", progress=False)
    assert not (tmp_path / "Set" / "half.off").exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["Set", "set.zip"]
