"""From a card to its data: resumed at the right byte, never mixed from two versions, unpacked whole or not at all."""

import contextlib
import gzip
import hashlib
import io
import shutil
import socket
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import pytest
from damage import damaged
from serving import Site, served

from pointset.data.catalogue import download as fetching
from pointset.data.catalogue.cards import Download, load_card
from pointset.data.catalogue.download import TRIES, download, fetch, unpack
from pointset.errors import PointsetError

CONTENT = np.random.default_rng(0).bytes(3_000_000)
OTHER = np.random.default_rng(1).bytes(3_000_000)
RIGHT = Download(size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(), md5=hashlib.md5(CONTENT).hexdigest())
UNKNOWN = Download()
GIVEN_UP = [0] * TRIES


@pytest.fixture
def site() -> Iterator[Site]:
    with served(Site({"/file.zip": CONTENT})) as running:
        yield running


def get(site: Site, target: Path, expected: Download = RIGHT, *mirrors: str) -> None:
    download(mirrors or (f"{site.url}/file.zip",), target, expected, progress=False, pause=0).rename(target)


def test_a_cut_connection_goes_on_at_the_right_byte_also_the_next_time(site: Site, tmp_path: Path) -> None:
    site.cuts = [1_000_000, 500_000, *GIVEN_UP]
    with pytest.raises(PointsetError, match=f"the connection was cut {TRIES} times in a row"):
        get(site, tmp_path / "file.zip")
    assert [asked for _, asked in site.asked][:3] == [None, "bytes=1000000-", "bytes=1500000-"]
    site.asked.clear()
    site.answers = [(503, {}, b"")]
    with pytest.raises(PointsetError, match="the server answered 503"):
        get(site, tmp_path / "file.zip")
    get(site, tmp_path / "file.zip")
    assert [asked for _, asked in site.asked] == ["bytes=1500000-"] * 2
    assert (tmp_path / "file.zip").read_bytes() == CONTENT


@pytest.mark.parametrize("headers", [{"Content-Range": "bytes 2000000-2999999/3000000"}, {}, None])
def test_a_server_that_goes_on_wrongly_is_asked_for_the_whole_file(
    site: Site, tmp_path: Path, headers: dict[str, str] | None
) -> None:
    site.cuts = [1_000_000, *GIVEN_UP]
    with pytest.raises(PointsetError):
        get(site, tmp_path / "file.zip")
    site.ranges = headers is not None
    site.answers = [(206, headers, CONTENT[2_000_000:])] if headers is not None else []
    site.asked.clear()
    get(site, tmp_path / "file.zip", UNKNOWN)
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert [asked for _, asked in site.asked] == (["bytes=1000000-", None] if site.ranges else ["bytes=1000000-"])


def test_a_file_that_changed_is_not_glued_to_the_old_one(site: Site, tmp_path: Path) -> None:
    site.cuts = [1_000_000, *GIVEN_UP]
    with pytest.raises(PointsetError):
        get(site, tmp_path / "file.zip")
    site.files["/file.zip"] = OTHER
    other = Download(sha256=hashlib.sha256(OTHER).hexdigest())
    with pytest.raises(PointsetError, match="its SHA256 is not the expected one"):
        get(site, tmp_path / "file.zip", other)
    get(site, tmp_path / "file.zip", other)
    assert (tmp_path / "file.zip").read_bytes() == OTHER


def test_parts_of_two_mirrors_are_kept_apart(site: Site, tmp_path: Path) -> None:
    site.files |= {"/old.zip": OTHER, "/short.zip": CONTENT[:2_000_000]}
    site.cuts = [1_000_000, *GIVEN_UP]
    with pytest.raises(PointsetError, match=r"short.zip: it has 2,000,000 bytes instead of 3,000,000"):
        get(site, tmp_path / "file.zip", RIGHT, f"{site.url}/old.zip", f"{site.url}/short.zip")
    site.cuts = [500_000]
    get(site, tmp_path / "file.zip")
    assert (tmp_path / "file.zip").read_bytes() == CONTENT
    assert [path.name for path in tmp_path.iterdir()] == ["file.zip"]


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        (
            (200, {"Content-Type": "text/html; charset=utf-8"}),
            UNKNOWN,
            "the server sent a web page instead of the file",
        ),
        ((204, {}), UNKNOWN, "the server answered 204"),
        ((302, {"Location": "file:///etc/hostname", "Content-Length": "0"}), UNKNOWN, "no connection"),
        (None, Download(size=17), "3,000,000 bytes instead of 17"),
        (None, Download(sha256="0" * 64), "its SHA256 is not the expected one"),
        (None, Download(md5="0" * 32), "its MD5 is not the expected one"),
    ],
)
def test_what_is_not_the_file_is_one_sentence_and_the_next_mirror_is_tried(
    site: Site, tmp_path: Path, answer: tuple[int, dict[str, str]] | None, expected: Download, words: str
) -> None:
    site.answers = [(*answer, b"<html>Log in first</html>")] if answer else []
    with pytest.raises(PointsetError, match=words) as caught:
        get(site, tmp_path / "file.zip", expected, f"{site.url}/file.zip", f"{site.url}/gone.zip")
    assert "gone.zip: the server answered 404" in str(caught.value)
    assert f"save it as {tmp_path / 'file.zip'}" in str(caught.value)
    assert len(str(caught.value)) < 600
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("status", "headers", "words"),
    [
        (206, {"Content-Range": "bytes 0-9/3000000"}, "a part of the file, which was not asked for"),
        (200, {"Content-Encoding": "gzip"}, "packed as gzip, which was not asked for"),
    ],
)
def test_what_was_not_asked_for_is_not_taken_for_the_file(
    site: Site, tmp_path: Path, status: int, headers: dict[str, str], words: str
) -> None:
    site.answers = [(status, headers, gzip.compress(CONTENT[:99]))]
    with pytest.raises(PointsetError, match=words):
        get(site, tmp_path / "file.zip", UNKNOWN)
    assert not (tmp_path / "file.zip").exists()


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_an_archive_that_unpacks_to_far_more_is_refused(kind: str, tmp_path: Path) -> None:
    archive, zeros = tmp_path / f"a.{kind}", bytes(80 << 20)
    if kind == "zip":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as content:
            content.writestr("data/zeros.bin", zeros)
    else:
        with tarfile.open(archive, "w:gz") as content:
            entry = tarfile.TarInfo("data/zeros.bin")
            entry.size = len(zeros)
            content.addfile(entry, io.BytesIO(zeros))
    with pytest.raises(PointsetError, match=r"unpacks to 83,886,080 or more: get it from its source"):
        unpack(archive, tmp_path / "data", progress=False)
    assert not (tmp_path / "data").exists()


def test_a_server_that_cannot_be_reached_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for address in (f"http://127.0.0.1:{port}/f.zip", "http://no-such-host.invalid/f.zip"):
        with pytest.raises(PointsetError, match="no connection"):
            download([address], tmp_path / "f.zip", UNKNOWN, progress=False)


# Archives

GOOD = {"Set/a/train/1.off": b"OFF", "Set/b/test/2.off": b"OFF", "README.txt": b"read me", "__MACOSX/Set/._1": b"x"}
Pack = Callable[[Path, dict[str, bytes]], Path]


def zipped(folder: Path, files: dict[str, bytes], compression: int = zipfile.ZIP_DEFLATED) -> Path:
    path = folder / "set.zip"
    with zipfile.ZipFile(path, "w", compression) as content:
        for name, data in files.items():
            content.writestr(name, data)
    return path


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


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("pack", [zipped, *(partial(tarball, mode=mode) for mode in ("", "gz", "bz2", "xz"))])
@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (GOOD, {"a/train/1.off": b"OFF", "b/test/2.off": b"OFF"}),
        ({"data/Set/1.npy": b"1", "data/Set/deep/2.npy": b"2", "notes.txt": b""}, {"1.npy": b"1", "deep/2.npy": b"2"}),
        ({"1.npy": b"1", "2.npy": b"2", "__MACOSX/._1.npy": b"x"}, {"1.npy": b"1", "2.npy": b"2"}),
        ({"./Set/1.npy": b"1", "Other/Set/3.npy": b"3"}, {"1.npy": b"1"}),
    ],
    ids=["at the top", "in another folder", "in no folder", "at the top and elsewhere"],
)
def test_the_folder_is_unpacked_and_the_rest_is_not(
    tmp_path: Path, pack: Pack, files: dict[str, bytes], expected: dict[str, bytes]
) -> None:
    left = tmp_path / ".Set.unpacking" / "Set" / "half.off"  # of a killed unpacking
    left.parent.mkdir(parents=True)
    left.write_bytes(b"OF")
    path = pack(tmp_path, files)
    unpack(path, tmp_path / "Set", progress=False)
    assert contents(tmp_path / "Set") == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["Set", path.name]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a/Set/1.off": b"", "b/Set/1.off": b""}, "must have one folder Set, got 2, in a, b"),
        ({"Other/1.off": b"OFF", "notes.txt": b""}, "one folder Set, got 0, in Other, notes.txt"),
        ({"Set/a/b.off": b"", "Set/a": b""}, "cannot be unpacked"),
        (None, "cannot be unpacked .*: delete it and fetch it again"),
    ],
)
def test_an_archive_of_something_else_is_named(tmp_path: Path, files: dict[str, bytes] | None, words: str) -> None:
    path = zipped(tmp_path, files or {})
    if files is None:
        path.write_bytes(b"<html>404</html>")
    with pytest.raises(PointsetError, match=rf"set.zip .*{words}"):
        unpack(path, tmp_path / "Set", progress=False)


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


@pytest.mark.parametrize("pack", [zipped, tarball])
@pytest.mark.parametrize("name", ["../outside.off", "Set/../../outside.off", "/tmp/outside.off"])
def test_nothing_is_unpacked_outside_the_folder(name: str, pack: Pack, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with contextlib.suppress(PointsetError):
        unpack(pack(home, {**GOOD, name: b"x"}), home / "Set", progress=False)
    assert not list(tmp_path.glob("outside.off"))
    assert not Path("/tmp/outside.off").exists()
    assert {path.name for path in home.iterdir()} <= {"Set", "set.zip", "set.tar.gz"}


@pytest.mark.parametrize("pack", [partial(zipped, compression=zipfile.ZIP_STORED), zipped, tarball])
def test_a_damaged_archive_is_refused_or_its_files_are_right(pack: Pack, tmp_path: Path) -> None:
    files = {**GOOD, "Set/c.off": np.random.default_rng(0).bytes(100)}
    path = pack(tmp_path, files)
    right, whole, refused = set(files.values()), path.read_bytes(), 0
    for seed in range(60):
        path.write_bytes(damaged(whole, seed))
        try:
            unpack(path, tmp_path / "Set", progress=False)
            assert set(contents(tmp_path / "Set").values()) <= right, f"unpacked wrong, seed {seed}"
            shutil.rmtree(tmp_path / "Set")
        except PointsetError as error:
            refused += path.name in str(error)
        assert [file.name for file in tmp_path.iterdir()] == [path.name]
    assert refused > 30  # of others only a date or a name is damaged


def test_an_archive_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    for path in (zipped(tmp_path, GOOD), tarball(tmp_path, GOOD)):
        path.write_bytes(path.read_bytes()[:-20])
        with pytest.raises(PointsetError, match="cannot be unpacked"):
            unpack(path, tmp_path / "Set", progress=False)
    path = tarball(tmp_path, {"Set/1.off": b"1" * 600, "Set/2.off": b"2" * 600}, "")
    path.write_bytes(gzip.compress(path.read_bytes()[: 3 * tarfile.BLOCKSIZE]))  # after the first file
    with pytest.raises(PointsetError, match="cannot be unpacked"):
        unpack(path, tmp_path / "Set", progress=False)
    assert not (tmp_path / "Set").exists()


# From a card to its folder

FILES = {f"{kind}/train/{kind}_0001.off": np.random.default_rng(0).bytes(300_000) for kind in ("bed", "sofa")}


@pytest.fixture
def archive(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The content of the archive of ModelNet10, as the card says from now on."""
    path = zipped(tmp_path, {f"ModelNet10/{name}": data for name, data in FILES.items()}, zipfile.ZIP_STORED)
    content = site.files["/ModelNet10.zip"] = path.read_bytes()
    path.unlink()
    right = {"urls": (f"{site.url}/ModelNet10.zip",), "download": Download(size=len(content))}
    card = msgspec.structs.replace(load_card("modelnet10"), **right)
    monkeypatch.setattr(fetching, "load_card", lambda name: card)
    return content


def test_the_data_is_fetched_once(home: Path, site: Site, archive: bytes) -> None:
    for _ in range(2):
        folder = fetch("modelnet10", progress=False)
        assert folder == home / "datasets" / "ModelNet10"
        assert contents(folder) == FILES
        assert sorted(path.name for path in folder.parent.iterdir()) == [".modelnet10.lock", "ModelNet10"]
    assert len(site.asked) == 1


def test_an_archive_saved_by_hand_is_checked_unpacked_and_kept(home: Path, site: Site, archive: bytes) -> None:
    path = home / "datasets" / "ModelNet10.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(archive[:-1])
    with pytest.raises(PointsetError, match=r"ModelNet10.zip is not the archive of modelnet10: it has .* bytes"):
        fetch("modelnet10", progress=False)
    path.write_bytes(archive)
    assert contents(fetch("modelnet10", progress=False)) == FILES
    assert site.asked == []
    assert path.exists()


def test_two_at_once_fetch_once(home: Path, site: Site, archive: bytes) -> None:
    site.delay = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        both = [pool.submit(fetch, "modelnet10", progress=False) for _ in range(2)]
        limit = time.monotonic() + 60
        while not site.asked:
            assert time.monotonic() < limit
            time.sleep(0.01)
        time.sleep(0.1)
        site.delay.set()
        assert {one.result(60) for one in both} == {home / "datasets" / "ModelNet10"}
    assert contents(home / "datasets" / "ModelNet10") == FILES
    assert len(site.asked) == 1


def test_data_that_cannot_be_fetched_says_why(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PointsetError, match=rf"the data of scanobjectnn .*: .*https://.*{home}/datasets/h5_files"):
        fetch("scanobjectnn", progress=False)
    home.write_text("", encoding="utf-8")
    with pytest.raises(PointsetError, match=r"cannot write to .*POINTSET_HOME"):
        fetch("modelnet10", progress=False)
