"""Digests of a release's files: from the card or from the download, checked once per version, and remembered."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from pointset.data.catalogue import intact
from pointset.data.catalogue.intact import KnownFiles, known_files, note_files
from pointset.data.pools.verify import verify_dataset
from pointset.errors import PointsetError


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose bytes were read for a digest."""
    read, names = intact.file_digest, list[str]()

    def watch(path: Path, kind: str) -> str:
        names.append(path.name)
        return read(path, kind)

    monkeypatch.setattr(intact, "file_digest", watch)
    return names


@pytest.fixture
def known(home: Path, tmp_path: Path) -> KnownFiles:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "a.h5").write_bytes(b"the right bytes")
    (folder / "b.h5").write_bytes(b"others")
    digests = {"a.h5": hashlib.md5(b"the right bytes").hexdigest(), "b.h5": hashlib.sha256(b"others").hexdigest()}
    return KnownFiles(folder, digests, "some-card")


def test_a_file_is_read_once_for_each_of_its_versions(known: KnownFiles, hashed: list[str]) -> None:
    path = known.folder / "a.h5"
    for _ in range(3):
        known.require(path)
        known.require(known.folder / "b.h5")
    assert hashed == ["a.h5", "b.h5"]
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
    known.require(path)
    assert hashed == ["a.h5", "b.h5", "a.h5"]
    known.require(path)
    assert len(hashed) == 3


def test_a_changed_byte_is_refused_until_it_is_mended(known: KnownFiles) -> None:
    path = known.folder / "a.h5"
    known.require(path)
    path.write_bytes(b"the right bytfs")
    for _ in range(2):
        with pytest.raises(PointsetError, match=r"a.h5 is not the file of some-card .another MD5"):
            known.require(path)
    path.write_bytes(b"the right bytes")
    known.require(path)


def test_all_files_are_read_anew_to_verify_them(known: KnownFiles, hashed: list[str]) -> None:
    for name in known.digests:
        known.require(known.folder / name)
    hashed.clear()
    assert known.verify() == []
    assert hashed == ["a.h5", "b.h5"]
    facts = (known.folder / "a.h5").stat()
    (known.folder / "a.h5").write_bytes(b"the right bytfs")
    os.utime(known.folder / "a.h5", ns=(facts.st_atime_ns, facts.st_mtime_ns))  # as a flipped bit on the disk
    known.require(known.folder / "a.h5")
    (known.folder / "b.h5").unlink()
    problems = known.verify()
    assert [word in problem for word, problem in zip(("a.h5 is not", "b.h5 cannot"), problems, strict=True)] == [
        True
    ] * 2
    with pytest.raises(PointsetError, match=r"a.h5 is not the file"):
        known.require(known.folder / "a.h5")  # it is remembered no more


def test_a_release_is_verified_by_its_digests(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "shape_names.txt").write_text("a\nb\n")
    with pytest.raises(PointsetError, match="holds a release whose files have no known digests"):
        verify_dataset(folder)
    note_files(folder, folder)
    (found,) = verify_dataset(folder)
    assert (found.shapes, found.what, found.problems) == (1, "files", ())
    (folder / "shape_names.txt").write_text("b\na\n")
    (found,) = verify_dataset(folder)
    assert "shape_names.txt is not the file" in found.problems[0]


def test_a_digest_that_the_card_corrected_is_checked_anew(known: KnownFiles) -> None:
    known.require(known.folder / "a.h5")
    with pytest.raises(PointsetError, match=r"a.h5"):
        KnownFiles(known.folder, {"a.h5": "0" * 32}).require(known.folder / "a.h5")


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'{"x": 1}', b"\xff"])
def test_a_damaged_memory_is_forgotten(known: KnownFiles, hashed: list[str], home: Path, note: bytes) -> None:
    known.require(known.folder / "a.h5")
    (home / intact.REMEMBERED).write_bytes(note)
    known.require(known.folder / "a.h5")
    known.require(known.folder / "a.h5")
    assert hashed == ["a.h5", "a.h5"]


def test_folders_that_cannot_be_written_to_are_checked_every_time(
    known: KnownFiles, hashed: list[str], home: Path
) -> None:
    home.write_text("a file in the place of the home")
    for _ in range(2):
        known.require(known.folder / "a.h5")
    assert hashed == ["a.h5", "a.h5"]
    assert sorted(path.name for path in known.folder.iterdir()) == ["a.h5", "b.h5"]


def test_what_is_not_known_or_not_there_passes(known: KnownFiles, hashed: list[str]) -> None:
    (known.folder / "mine.h5").write_bytes(b"anything")
    known.require(known.folder / "mine.h5")
    (known.folder / "a.h5").unlink()
    known.require(known.folder / "a.h5")
    assert hashed == []


def test_a_fetched_folder_knows_all_its_files(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "fetched"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "data_gaussian_1.npy").write_bytes(b"numbers")
    assert known_files(folder, None).digests == {}
    note_files(folder, folder)
    found = known_files(folder, None)
    assert found.digests == {"inner/data_gaussian_1.npy": hashlib.sha256(b"numbers").hexdigest()}
    (folder / "inner" / "data_gaussian_1.npy").write_bytes(b"nunbers")
    with pytest.raises(PointsetError, match=r"data_gaussian_1.npy is not the file of fetched .another SHA256"):
        found.require(folder / "inner" / "data_gaussian_1.npy")
    assert json.loads(intact.notes_of(folder).read_text())
    assert intact.notes_of(folder).parent == tmp_path, "beside the data, which is left as it was"


def test_a_folder_is_a_cards_by_its_name(tmp_path: Path) -> None:
    """A repacked copy has other bytes, and another name."""
    assert known_files(tmp_path / "modelnet40_ply_hdf5_2048", None).name == "modelnet40-hdf5"
    assert len(known_files(tmp_path / "modelnet40_ply_hdf5_2048", None).digests) == 7
    assert known_files(tmp_path / "modelnet40_ply_hdf5_1024", None).digests == {}
