"""From a card to its data: once, by one process, also after a kill; or by hand if no program can download it."""

import hashlib
import io
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from serving import Site, served

from pointset.data.catalogue import download as fetching
from pointset.data.catalogue.cards import Download, load_card
from pointset.data.catalogue.checksums import known_files
from pointset.data.catalogue.download import fetch
from pointset.errors import PointsetError


def packed(files: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as content:
        for name, data in files.items():
            content.writestr(name, data)
    return file.getvalue()


FILES = {
    f"ModelNet10/{kind}/train/{kind}_0001.off": np.random.default_rng(0).bytes(300_000) for kind in ("bed", "sofa")
}
ARCHIVE = packed(FILES)


@pytest.fixture
def site() -> Iterator[Site]:
    with served(Site({"/ModelNet10.zip": ARCHIVE})) as running:
        yield running


@pytest.fixture
def card(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    real = load_card("modelnet10")
    test = msgspec.structs.replace(real, urls=(f"{site.url}/ModelNet10.zip",), download=Download(size=len(ARCHIVE)))
    monkeypatch.setattr(fetching, "load_card", lambda name: test)


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder.parent).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def test_the_data_is_fetched_once(home: Path, site: Site, card: None) -> None:
    folder = fetch("modelnet10", progress=False)
    assert folder == home / "datasets" / "ModelNet10"
    assert files(folder) == FILES
    assert [path.name for path in folder.parent.iterdir() if not path.name.startswith(".")] == ["ModelNet10"]
    assert fetch("modelnet10", progress=False) == folder
    assert len(site.asked) == 1


def test_an_archive_saved_by_hand_is_unpacked_and_kept(home: Path, site: Site, card: None) -> None:
    archive = home / "datasets" / "ModelNet10.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(ARCHIVE)
    assert files(fetch("modelnet10", progress=False)) == FILES
    assert site.asked == []
    assert archive.exists()


def test_a_wrong_archive_saved_by_hand_is_named(home: Path, card: None) -> None:
    archive = home / "datasets" / "ModelNet10.zip"
    archive.parent.mkdir(parents=True)
    archive.write_bytes(ARCHIVE[:-1])
    with pytest.raises(PointsetError, match=r"ModelNet10.zip is not the archive of modelnet10: it has .* bytes"):
        fetch("modelnet10", progress=False)


CHILD = """
import sys, time, zipfile
import msgspec
from pointset.data.catalogue import download
from pointset.data.catalogue.cards import load_card, Download
url, slow = sys.argv[1], float(sys.argv[2])
card = msgspec.structs.replace(load_card("modelnet10"), urls=(url,))
download.load_card = lambda name: msgspec.structs.replace(card, download=Download())
extract = zipfile.ZipFile.extract
def slowly(*arguments):
    done = extract(*arguments)
    print("unpacked one", flush=True)
    time.sleep(slow)
    return done
zipfile.ZipFile.extract = slowly
print(download.fetch("modelnet10", progress=False))
"""


def child(site: Site, slow: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, f"{site.url}/ModelNet10.zip", str(slow)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ.copy())


def test_killed_while_unpacking_leaves_nothing_that_looks_finished(home: Path, site: Site, card: None) -> None:
    process = child(site, slow=30)
    assert process.stdout is not None
    assert process.stdout.readline() == "unpacked one\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert not (home / "datasets" / "ModelNet10").exists()
    assert files(fetch("modelnet10", progress=False)) == FILES
    assert sorted(path.name for path in (home / "datasets").iterdir()) == [".modelnet10.lock", "ModelNet10"]
    assert len(site.asked) == 1, "the archive was whole: it is not downloaded again"


@pytest.mark.slow
def test_two_processes_fetch_once(home: Path, site: Site) -> None:
    site.delay = threading.Event()
    processes = [child(site, slow=0) for _ in range(2)]
    limit = time.monotonic() + 60
    while not site.asked:
        assert time.monotonic() < limit
        time.sleep(0.01)
    time.sleep(0.3)
    site.delay.set()
    for process in processes:
        printed, _ = process.communicate(timeout=60)
        assert process.returncode == 0
        assert printed.splitlines()[-1] == str(home / "datasets" / "ModelNet10")
    assert len(site.asked) == 1


def test_what_no_program_can_download_says_how_a_person_can(home: Path) -> None:
    place = home / "datasets" / "h5_files"
    with pytest.raises(PointsetError, match=rf"scanobjectnn cannot be downloaded automatically: .*https://.*{place}"):
        fetch("scanobjectnn", progress=False)


def test_a_home_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "file"))
    with pytest.raises(PointsetError, match=r"cannot write to .*POINTSET_HOME"):
        fetch("modelnet10", progress=False)


def test_the_files_of_clouds_are_noted_with_their_digests(
    home: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.files["/c.zip"] = archive = packed(
        {"modelnet40_c/label.npy": b"labels", "modelnet40_c/data_x_1.npy": b"points"}
    )
    right = Download(md5=hashlib.md5(archive).hexdigest())
    card = msgspec.structs.replace(load_card("modelnet40-c"), urls=(f"{site.url}/c.zip",), download=right)
    monkeypatch.setattr(fetching, "load_card", lambda name: card)
    folder = fetch("modelnet40-c", progress=False)
    assert known_files(folder, card).digests == {
        "label.npy": hashlib.sha256(b"labels").hexdigest(),
        "data_x_1.npy": hashlib.sha256(b"points").hexdigest(),
    }
    assert sorted(path.name for path in folder.iterdir()) == ["data_x_1.npy", "label.npy"]
