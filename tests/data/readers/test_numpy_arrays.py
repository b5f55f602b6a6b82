"""numpy's files: damaged headers, hostile sizes and archives made to fill the memory are refused in one line."""

import contextlib
import io
import struct
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cloud_files import read_both, refusal
from damage import damaged

from pointset.data import read_cloud
from pointset.data.readers.clouds import CloudError

POINTS = np.arange(12.0).reshape(4, 3)


def npy(header: str, version: bytes = b"\1\0", data: bytes = POINTS.tobytes()) -> bytes:
    text = header.encode()
    return b"\x93NUMPY" + version + struct.pack("<H" if version == b"\1\0" else "<I", len(text)) + text + data


def npz(compression: int = zipfile.ZIP_DEFLATED, **arrays: np.ndarray | bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, array in arrays.items():
            content = io.BytesIO()
            np.save(content, array) if isinstance(array, np.ndarray) else content.write(array)
            archive.writestr(f"{name}.npy", content.getvalue())
    return file.getvalue()


PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 3), }"
GOOD = {
    "by hand": npy(PLAIN),
    "spaced": npy(PLAIN.replace("'", '"').replace(", ", ",") + "   \n"),
    "version 2": npy(PLAIN, b"\2\0"),
    "version 3": npy(PLAIN, b"\3\0"),
    "columns": npy(PLAIN.replace("False", "True"), data=POINTS.T.tobytes()),
    "whole numbers": npy(PLAIN.replace("<f8", ">i2"), data=POINTS.astype(">i2").tobytes()),
    "half": npy(PLAIN.replace("<f8", "<f2"), data=POINTS.astype("<f2").tobytes()),
}


@pytest.mark.parametrize("name", GOOD)
def test_every_unambiguous_file_is_read(tmp_path: Path, name: str) -> None:
    np.testing.assert_array_equal(read_both(tmp_path / "a.npy", GOOD[name]), POINTS)
    np.testing.assert_array_equal(read_both(tmp_path / "a.npz", npz(anything=GOOD[name])), POINTS)


@pytest.mark.parametrize("length", [1, 65535])
def test_an_archive_may_have_the_longest_comment(tmp_path: Path, length: int) -> None:
    content = npz(points=POINTS)
    content = content[:-2] + struct.pack("<H", length) + b"x" * length
    np.testing.assert_array_equal(read_both(tmp_path / "a.npz", content), POINTS)
    for wrong in (content[:-1], content + b"x"):
        assert "holds no archive of arrays that can be read" in refusal(tmp_path / "a.npz", wrong)


HEADERS = [
    PLAIN[:-1],
    PLAIN.replace("(4", "(4L"),
    PLAIN.replace("(4", "(" * 300 + "4"),
    PLAIN.replace("4, 3", "-4, 3"),
    PLAIN.replace("4, 3", "4.0, 3"),
    PLAIN.replace("4, 3", "True, 3"),
    PLAIN.replace("False", "0"),
    PLAIN.replace("'shape'", "'shapes'"),
    PLAIN.replace("}", "'more': 1}"),
    PLAIN.replace("<f8", "\\q"),
    PLAIN + " " * 20_000,
    PLAIN + "\0",
    "1",
    "{[]: 1}",
    "",
]
SHAPES = [
    PLAIN.replace("4, 3", "12,"),
    PLAIN.replace("4, 3", ""),
    PLAIN.replace("4, 3", "3, 4"),
    PLAIN.replace("4, 3", "4, 3, 1"),
    PLAIN.replace("<f8", "<c8"),
    PLAIN.replace("<f8", "<f16"),
    PLAIN.replace("<f8", "|b1"),
    PLAIN.replace("<f8", "|O"),
    PLAIN.replace("<f8", "<M8[s]"),
    PLAIN.replace("'<f8'", "[('x', '<f8')]"),
    PLAIN.replace("'<f8'", "'<f8,' * 2"),
]


@pytest.mark.parametrize("header", HEADERS + SHAPES, ids=lambda header: header[:70])
def test_headers_of_anything_else_are_refused(tmp_path: Path, header: str) -> None:
    for name, content in {"a.npy": npy(header), "a.npz": npz(points=npy(header))}.items():
        message = refusal(tmp_path / name, content)
        assert "header of a numpy array" in message or "numbers [n, 3] or [n, 6], found" in message, message


@pytest.mark.parametrize("rows", [10**12, 2**64, 10**25, 5, 3, 0])
def test_announced_sizes_are_compared_with_the_file(tmp_path: Path, rows: int) -> None:
    """The size is checked before memory is allocated."""
    lying = npy(PLAIN.replace("4, 3", f"{rows}, 3"))
    for name, content in {"a.npy": lying, "a.npz": npz(points=lying)}.items():
        assert "as its header says, found" in refusal(tmp_path / name, content)


def test_an_archive_made_to_fill_the_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("points.npy", "w") as file:
        file.write(npy(PLAIN.replace("4, 3", "3_000_000, 3"), data=b""))
        for _ in range(72):
            file.write(bytes(1_000_000))
    with pytest.raises(CloudError, match=r"a.npz: unpacks to 72,000,\d+ bytes from"):
        read_cloud(path)


def test_a_small_cloud_may_be_packed_well(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, np.tile([1.0, 2.0, 3.0], (100_000, 1)))
    assert path.stat().st_size * 100 < 100_000 * 24
    assert len(read_cloud(path).points) == 100_000


WHOLE = npz(zipfile.ZIP_STORED, points=POINTS, normals=POINTS + 1)
BAD_ARCHIVES = {
    "another version": (WHOLE.replace(b"PK\1\2\x14\x03\x14\0", b"PK\1\2\x14\x03\xff\0"), "zip file version"),
    "encrypted": (WHOLE.replace(b"\x14\0\0\0\0\0", b"\x14\0\1\0\0\0"), "encrypted"),
    "a number": (WHOLE.replace(struct.pack("<d", 5), struct.pack("<d", 6)), "CRC"),
    "a name": (WHOLE.replace(b"normals.npy", b"nprmals.npy", 1), "'normals.npy'"),
    "a name in the directory": (WHOLE[:600] + WHOLE[600:].replace(b"normals", b"nprmals"), "nprmals.npy"),
    "another type": (npz(points=b"text"), "header of a numpy array"),
    "no name": (npz(a=POINTS, b=POINTS), "'a, b'"),
    "six numbers and normals": (npz(points=np.hstack([POINTS, POINTS]), normals=POINTS), "as many normals as points"),
    "cut": (WHOLE[:-30], "BadZipFile"),
    "surplus": (WHOLE + b"\0", "its directory is damaged"),
    "another disk": (WHOLE[:-18] + b"\1" + WHOLE[-17:], "its directory is damaged"),
    "another count": (WHOLE[:-14] + b"\3" + WHOLE[-13:], "its directory is damaged"),
    "another size": (WHOLE[:-10] + bytes([WHOLE[-10] + 1]) + WHOLE[-9:], "BadZipFile"),
    "text": (b"1 2 3", "BadZipFile"),
    "long": (npz(**{"a" * 3000: POINTS, "b": POINTS}), "aaa"),
}


@pytest.mark.parametrize("name", BAD_ARCHIVES)
def test_damaged_archives_are_refused(tmp_path: Path, name: str) -> None:
    content, words = BAD_ARCHIVES[name]
    assert content != WHOLE
    assert words in refusal(tmp_path / "a.npz", content)


def test_a_lying_size_asks_for_no_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_bytes(npz(points=POINTS))
    with zipfile.ZipFile(path) as archive:
        size = archive.infolist()[0].compress_size
    content = path.read_bytes()
    place = content.index(b"PK\1\2") + 20
    assert content[place : place + 4] == struct.pack("<I", size)
    path.write_bytes(content[:place] + struct.pack("<I", 2**31 - 2) + content[place + 4 :])
    tracemalloc.start()
    try:
        assert read_cloud(path).points.shape == (4, 3)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_that_is_shorter_than_its_directory_says_is_named(tmp_path: Path, compression: int) -> None:
    content = npz(compression, points=POINTS)
    size = 128 + POINTS.nbytes
    place = content.index(b"PK\1\2") + 24
    assert content[place : place + 4] == struct.pack("<I", size)
    lying = content[:place] + struct.pack("<I", size + 1) + content[place + 4 :]
    assert f"'points.npy' has {size} bytes instead of {size + 1}" in refusal(tmp_path / "a.npz", lying)


def test_two_arrays_of_one_name(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, warnings.catch_warnings(action="ignore"):
        for _ in range(2):
            archive.writestr("points.npy", npy(PLAIN))
    assert "two arrays of one name" in refusal(tmp_path / "a.npz", (tmp_path / "a.npz").read_bytes())


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_damage_is_refused_or_leaves_as_many_points(tmp_path: Path, name: str) -> None:
    whole, refused = npy(PLAIN) if name == "a.npy" else npz(points=POINTS), 0
    for seed in range(400):
        (tmp_path / name).write_bytes(damaged(whole, seed))
        with contextlib.suppress(CloudError):
            refused += 1
            assert read_cloud(tmp_path / name).points.shape == (4, 3)
            refused -= 1
    assert 100 < refused < 400


SIGNALLING = np.full((4, 3), struct.unpack("<I", b"\1\0\xa0\x7f")[0], np.uint32).view(np.float32)
"""NaN, of which a conversion warns."""


def test_a_signalling_nan_is_refused_without_a_warning(tmp_path: Path) -> None:
    content = npz(points=SIGNALLING, normals=np.ones((4, 3)))
    assert "point 0 has a number that is not finite" in refusal(tmp_path / "a.npz", content)


@pytest.mark.parametrize(
    ("shape", "advice"),
    [
        ((3, 50), "transposed"),
        ((6, 50), "transposed"),
        ((50, 4), "others out"),
        ((3, 5), "others out"),
        ((3, 2), ""),
        ((50, 50), "others out"),
    ],
)
def test_a_transposed_array_is_told_from_one_with_more_columns(
    shape: tuple[int, int], advice: str, tmp_path: Path
) -> None:
    content = io.BytesIO()
    np.save(content, np.ones(shape))
    message = refusal(tmp_path / "a.npy", content.getvalue())
    assert f"expected numbers [n, 3] or [n, 6], found <f8 {list(shape)}" in message
    assert ("it looks transposed, save array.T" in message) == (advice == "transposed")
    assert ("leave the others out" in message) == (advice == "others out")


@pytest.mark.parametrize(("save", "name"), [(np.save, "a.npy"), (np.savez, "a.npz")])
def test_a_transposed_array_is_not_three_points_of_many_columns(
    save: Callable[..., None], name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    save(path, np.arange(150.0).reshape(3, 50))
    with pytest.raises(CloudError, match=r"found <f8 \[3, 50\]: it looks transposed, save array.T"):
        read_cloud(path, features=["columns"])


@pytest.mark.parametrize("key", ["faces", "triangles"])
def test_the_vertices_of_a_mesh_are_not_a_cloud(key: str, tmp_path: Path) -> None:
    faces = np.array([[0, 1, 2]])
    assert "is a mesh, and .npz files are read as clouds" in refusal(
        tmp_path / "a.npz", npz(vertices=POINTS, **{key: faces})
    )
    np.testing.assert_array_equal(
        read_both(tmp_path / "a.npz", npz(vertices=POINTS[::-1], points=POINTS, **{key: faces})), POINTS
    )
