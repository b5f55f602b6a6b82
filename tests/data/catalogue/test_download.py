"""From a card to its data: retried, verified, unpacked whole or not at all."""

import hashlib
import io
import tarfile
import threading
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import numpy as np
import pytest
from toy import contents

from pointset import PointsetError
from pointset.data import load_card
from pointset.data.catalogue import download as fetching
from pointset.data.catalogue.cards import Download
from pointset.data.catalogue.download import download, fetch, unpack
from pointset.runs import files

CONTENT = np.random.default_rng(0).bytes(3_000_000)
RIGHT = Download(size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest(), md5=hashlib.md5(CONTENT).hexdigest())


@dataclass
class Site:
    """The files of the server, its faults, and the requests it received."""

    files: dict[str, bytes] = field(default_factory=dict)
    cuts: list[int] = field(default_factory=list)  # bytes of the body after which the next answers are cut off
    answers: list[tuple[int, dict[str, str], bytes]] = field(default_factory=list)  # to give instead of the next ones
    asked: list[str] = field(default_factory=list)  # the paths of the requests
    url: str = ""


@pytest.fixture
def site():
    """A real HTTP server on this machine with faults on demand."""
    site = Site({"/file.zip": CONTENT})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.asked.append(self.path)
            if site.answers:
                self._answer(*site.answers.pop(0))
            elif self.path not in site.files:
                self._answer(404, {}, b"")
            else:
                content = site.files[self.path]
                headers = {"Content-Length": str(len(content))}
                self._answer(200, headers, content[: site.cuts.pop(0) if site.cuts else None])

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            with suppress(ConnectionError):  # of a client that has had enough
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    server.shutdown()
    server.server_close()
    thread.join()


def get(site: Site, folder: Path, expected: Download = RIGHT, *mirrors: str) -> bytes:
    urls = mirrors or (f"{site.url}/file.zip",)
    card = msgspec.structs.replace(load_card("modelnet10"), urls=urls, download=expected)
    return download(card, folder / "file.zip", progress=False).read_bytes()


def test_a_lost_connection_is_tried_again(site, tmp_path):
    site.cuts = [1_000_000]
    assert get(site, tmp_path) == CONTENT
    assert len(site.asked) == 2


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        ((302, {"Location": "file:///etc/hostname"}), Download(), "No connection adapters"),
        (None, Download(sha256="0" * 64), "does not match the known hash"),
        (None, Download(md5="0" * 32), "does not match the known hash"),
    ],
)
def test_a_wrong_file_is_one_sentence_and_the_next_mirror_is_tried(
    site, tmp_path, monkeypatch, answer, expected, words
):
    monkeypatch.setattr(fetching, "RETRIES", 0)
    site.answers = [(*answer, b"<html>Log in first</html>")] if answer else []
    with pytest.raises(PointsetError, match=words) as caught:
        get(site, tmp_path, expected, f"{site.url}/file.zip", f"{site.url}/gone.zip", "http://127.0.0.1:9/f.zip")
    assert "gone.zip: 404" in str(caught.value)
    assert f"save it as {tmp_path / 'file.zip'}" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


# Archives

GOOD = {"Set/a/train/1.off": b"OFF", "Set/b/test/2.off": b"OFF", "README.txt": b"read me", "__MACOSX/Set/._1": b"x"}


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


@pytest.mark.parametrize("pack", [zipped, *(partial(tarball, mode=mode) for mode in ("", "xz"))])
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
def test_the_folder_is_unpacked_and_the_rest_is_not(tmp_path, pack, files, expected):
    left = tmp_path / ".Set.unpacking" / "Set" / "half.off"  # of a killed unpacking
    left.parent.mkdir(parents=True)
    left.write_bytes(b"OF")
    path = pack(tmp_path, files)
    unpack(path, tmp_path / "Set")
    assert contents(tmp_path / "Set") == expected
    assert sorted(file.name for file in tmp_path.iterdir()) == ["Set", path.name]


def damaged_zip(folder: Path) -> Path:
    path = zipped(folder, {"Set/c.off": CONTENT[:99]}, zipfile.ZIP_STORED)
    path.write_bytes(path.read_bytes().replace(CONTENT[50:60], bytes(10)))
    return path


def linked(folder: Path, kind: bytes, target: str) -> Path:
    entry = tarfile.TarInfo("Set/link.off")
    entry.type, entry.linkname = kind, target
    return tarball(folder, GOOD, "gz", entry)


@pytest.mark.parametrize(
    ("pack", "words"),
    [
        (partial(zipped, files={"Set/zeros.bin": bytes(1 << 20)}), "unpacks to 1,048,576: get it from its source"),
        (partial(tarball, files={"Set/zeros.bin": bytes(1 << 20)}), "unpacks to 1,048,576: get it from its source"),
        (damaged_zip, "cannot be unpacked .*: delete it and fetch it again"),
        (partial(linked, kind=tarfile.SYMTYPE, target="/etc/passwd"), "cannot be unpacked .*link"),
        (partial(linked, kind=tarfile.LNKTYPE, target="../x"), "cannot be unpacked .*link"),
        (partial(linked, kind=tarfile.FIFOTYPE, target=""), "cannot be unpacked .*link"),
    ],
)
def test_a_wrong_archive_is_named_and_nothing_of_it_stays(tmp_path, monkeypatch, pack, words):
    monkeypatch.setattr(files, "SMALL", 1 << 16)
    path = pack(tmp_path)
    with pytest.raises(PointsetError, match=rf"{path.name} .*{words}"):
        unpack(path, tmp_path / "Set")
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("pack", [zipped, tarball])
@pytest.mark.parametrize("name", ["../outside.off", "Set/../../outside.off"])
def test_nothing_is_unpacked_outside_the_folder(name, pack, tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    with suppress(PointsetError):
        unpack(pack(home, {**GOOD, name: b"x"}), home / "Set")
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert {path.name for path in home.iterdir()} <= {"Set", "set.zip", "set.tar.gz"}


# From a card to its folder

FILES = {f"{kind}/train/{kind}_0001.off": np.random.default_rng(0).bytes(300_000) for kind in ("bed", "sofa")}


@pytest.fixture
def archive(site, tmp_path, monkeypatch):
    """The content of the archive of ModelNet10, as the card says from now on."""
    path = zipped(tmp_path, {f"ModelNet10/{name}": data for name, data in FILES.items()}, zipfile.ZIP_STORED)
    content = site.files["/ModelNet10.zip"] = path.read_bytes()
    path.unlink()
    right = {"urls": (f"{site.url}/ModelNet10.zip",), "download": Download(sha256=hashlib.sha256(content).hexdigest())}
    card = msgspec.structs.replace(load_card("modelnet10"), **right)
    monkeypatch.setattr(fetching, "load_card", lambda name: card)
    return content


def test_the_data_is_fetched_once(home, site, archive):
    for _ in range(2):
        folder = fetch("modelnet10", progress=False)
        assert folder == home / "datasets" / "ModelNet10"
        assert contents(folder) == FILES
        assert sorted(path.name for path in folder.parent.iterdir()) == [".modelnet10.lock", "ModelNet10"]
    assert len(site.asked) == 1


def test_an_archive_saved_by_hand_is_unpacked_and_kept(home, site, archive):
    path = home / "datasets" / "ModelNet10.zip"
    path.parent.mkdir(parents=True)
    path.write_bytes(archive)
    assert contents(fetch("modelnet10", progress=False)) == FILES
    assert site.asked == []
    assert path.exists()


def test_data_that_cannot_be_fetched_says_why(home, monkeypatch):
    with pytest.raises(PointsetError, match=rf"the data of scanobjectnn .*: .*https://.*{home}/datasets/h5_files"):
        fetch("scanobjectnn", progress=False)
    home.write_text("", encoding="utf-8")
    with pytest.raises(PointsetError, match=r"cannot write to .*POINTSET_HOME"):
        fetch("modelnet10", progress=False)
