"""Digests of a release's files: from the card or from the download."""

import hashlib
from pathlib import Path

import pytest

from pointset.data.catalogue.checksums import KnownFiles, known_files, note_files
from pointset.data.pools.verify import verify_dataset
from pointset.errors import PointsetError


@pytest.fixture
def known(tmp_path: Path) -> KnownFiles:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "a.h5").write_bytes(b"the right bytes")
    (folder / "b.h5").write_bytes(b"others")
    digests = {"a.h5": hashlib.md5(b"the right bytes").hexdigest(), "b.h5": hashlib.sha256(b"others").hexdigest()}
    return KnownFiles(folder, digests, "some-card")


def test_a_changed_byte_is_refused_until_it_is_mended(known: KnownFiles) -> None:
    path = known.folder / "a.h5"
    known.require(path)
    path.write_bytes(b"the right bytfs")
    for _ in range(2):
        with pytest.raises(PointsetError, match=r"a.h5 is not the file of some-card .another MD5"):
            known.require(path)
    path.write_bytes(b"the right bytes")
    known.require(path)


def test_all_problems_are_listed(known: KnownFiles) -> None:
    assert known.problems() == []
    (known.folder / "a.h5").write_bytes(b"the right bytfs")
    (known.folder / "b.h5").unlink()
    wrong, absent = known.problems()
    assert "a.h5 is not the file" in wrong
    assert "b.h5 cannot be read" in absent


def test_a_release_is_verified_by_its_digests(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "shape_names.txt").write_text("a\nb\n")
    with pytest.raises(PointsetError, match="holds a release whose files have no known digests"):
        verify_dataset(folder)
    note_files(folder, folder)
    (verified,) = verify_dataset(folder)
    assert (verified.shapes, verified.what, verified.problems) == (1, "files", ())
    (folder / "shape_names.txt").write_text("b\na\n")
    (verified,) = verify_dataset(folder)
    assert "shape_names.txt is not the file" in verified.problems[0]


def test_unknown_and_absent_files_pass(known: KnownFiles) -> None:
    (known.folder / "mine.h5").write_bytes(b"anything")
    known.require(known.folder / "mine.h5")
    (known.folder / "a.h5").unlink()
    known.require(known.folder / "a.h5")


@pytest.mark.parametrize("note", [b"", b"{", b"[]", b'["x"]', b'{"x": 1}', b"\xff"])
def test_a_fetched_folder_knows_all_its_files(tmp_path: Path, note: bytes) -> None:
    folder = tmp_path / "fetched"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "data_gaussian_1.npy").write_bytes(b"numbers")
    assert known_files(folder, None).digests == {}
    note_files(folder, folder)
    known = known_files(folder, None)
    assert known.digests == {"inner/data_gaussian_1.npy": hashlib.sha256(b"numbers").hexdigest()}
    (folder / "inner" / "data_gaussian_1.npy").write_bytes(b"nunbers")
    with pytest.raises(PointsetError, match=r"data_gaussian_1.npy is not the file of fetched .another SHA256"):
        known.require(folder / "inner" / "data_gaussian_1.npy")
    (beside,) = tmp_path.glob(".*")
    beside.write_bytes(note)  # damaged digests are unknown digests
    assert known_files(folder, None).digests == {}


def test_a_folder_is_a_cards_by_its_name(tmp_path: Path) -> None:
    """A repacked copy has other bytes, and another name."""
    assert known_files(tmp_path / "modelnet40_ply_hdf5_2048", None).name == "modelnet40-hdf5"
    assert len(known_files(tmp_path / "modelnet40_ply_hdf5_2048", None).digests) == 7
    assert known_files(tmp_path / "modelnet40_ply_hdf5_1024", None).digests == {}
