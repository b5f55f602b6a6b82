"""Integer colours of any type are converted to shares of full intensity, for every kind of file."""

from pathlib import Path

import numpy as np
import pytest

from pointset.data import CloudError, open_scan, read_cloud
from pointset.data.readers.lzf import unpack_lzf

XYZ = np.arange(12.0).reshape(4, 3) ** 2
BYTES = np.array([[0, 7, 0], [1, 0, 2], [0, 3, 9], [255, 128, 51]])  # the first pieces are dark
PLY_TYPES = {"i4": "int", "u4": "uint", "u2": "ushort", "u1": "uchar"}
KINDS = ["int.npz", "text.ply", "little.ply", "big.ply", "text.pcd", "binary.pcd", "compressed.pcd"]


def ply(colors: np.ndarray, form: str, kind: str) -> bytes:
    names = {"text": "ascii", "little": "binary_little_endian", "big": "binary_big_endian"}
    columns = "".join(f"property double {axis}\n" for axis in "xyz")
    columns += "".join(f"property {PLY_TYPES[kind]} {name}\n" for name in ("red", "green", "blue"))
    head = f"ply\nformat {names[form]} 1.0\nelement vertex {len(colors)}\n{columns}end_header\n"
    return head.encode() + rows(colors, kind, {"text": "", "little": "<", "big": ">"}[form])


def pcd(colors: np.ndarray, form: str, kind: str) -> bytes:
    sign, size = kind[0].upper(), kind[1]
    head = f"VERSION 0.7\nFIELDS x y z r g b\nSIZE 8 8 8 {size} {size} {size}\nTYPE F F F {sign} {sign} {sign}\n"
    data = {"text": "ascii", "compressed": "binary_compressed"}.get(form, form)
    head += f"WIDTH {len(colors)}\nHEIGHT 1\nPOINTS {len(colors)}\nDATA {data}\n"
    if form != "compressed":
        return head.encode() + rows(colors, kind, "" if form == "text" else "<")
    plain = b"".join(column.astype("<f8").tobytes() for column in XYZ.T)
    plain += b"".join(column.astype("<" + kind).tobytes() for column in colors.T)
    packed = b"".join(bytes([len(one) - 1]) + one for one in (plain[i : i + 32] for i in range(0, len(plain), 32)))
    assert unpack_lzf(packed, len(plain)) == plain
    return head.encode() + len(packed).to_bytes(4, "little") + len(plain).to_bytes(4, "little") + packed


def rows(colors: np.ndarray, kind: str, order: str) -> bytes:
    if not order:
        lines = (" ".join(map(str, [*a, *b])) for a, b in zip(XYZ.tolist(), colors.tolist(), strict=True))
        return "".join(f"{line}\n" for line in lines).encode()
    record = np.dtype([(axis, f"{order}f8") for axis in "xyz"] + [(name, f"{order}{kind}") for name in "rgb"])
    return np.array([(*a, *b) for a, b in zip(XYZ, colors, strict=True)], record).tobytes()


def written(folder: Path, name: str, colors: np.ndarray, kind: str) -> Path:
    path = folder / name
    form = path.stem
    if path.suffix == ".npz":
        np.savez(path, points=XYZ, colors=colors.astype(kind))
    else:
        path.write_bytes((ply if path.suffix == ".ply" else pcd)(colors, form, kind))
    return path


@pytest.mark.parametrize("kind", ["i4", "u4", "u2", "u1"])
@pytest.mark.parametrize("name", KINDS)
def test_shares_are_those_of_the_whole_file(tmp_path: Path, name: str, kind: str) -> None:
    """Also when read in pieces, all but one of which have only dark colours."""
    full = 65535 if kind == "u2" else 255
    path = written(tmp_path, name, BYTES, kind)
    expected = np.float32(BYTES / full)
    np.testing.assert_array_equal(read_cloud(path, features=("colors",)).features, expected)
    pieces = [*open_scan(path, piece=1, features=("colors",))()]
    np.testing.assert_allclose(np.concatenate(pieces), np.hstack([XYZ, BYTES / full]))


@pytest.mark.parametrize("name", KINDS)
def test_wide_numbers_may_have_16_bits(tmp_path: Path, name: str) -> None:
    colors = BYTES * 257
    found = read_cloud(written(tmp_path, name, colors, "i4"), features=("colors",)).features
    np.testing.assert_array_equal(found, np.float32(colors / 65535))


@pytest.mark.parametrize("odd", [-1, 65536])
@pytest.mark.parametrize("name", KINDS)
def test_other_wide_numbers_are_refused(tmp_path: Path, name: str, odd: int) -> None:
    colors = BYTES.copy()
    colors[-1, 1] = odd
    least, most = colors.min(), colors.max()
    path = written(tmp_path, name, colors, "i4")
    with pytest.raises(
        CloudError, match=rf"{name}: has colors from {least} to {most} .* save them as numbers from 0 to"
    ):
        read_cloud(path, features=("colors",))
    with pytest.raises(CloudError, match=rf"{name}: has colors from {least} to {most}"):
        next(open_scan(path, piece=1, features=("colors",))())


@pytest.mark.parametrize("name", ["colors_id", "colors0", "r", "red"])
def test_other_arrays_are_not_colors(tmp_path: Path, name: str) -> None:
    values = np.array([[3], [1], [4], [200]], np.uint8)
    np.savez(tmp_path / "a.npz", points=XYZ.astype(np.int32), **{name: values})
    np.testing.assert_array_equal(read_cloud(tmp_path / "a.npz", features=(name,)).features, values)


@pytest.mark.parametrize("form", ["text", "binary", "compressed"])
def test_r_without_g_and_b_is_not_a_color(tmp_path: Path, form: str) -> None:
    path = tmp_path / "range.pcd"
    path.write_bytes(pcd(BYTES, form, "u1").replace(b"x y z r g b", b"x y z r g c"))
    np.testing.assert_array_equal(read_cloud(path, features=("r",)).features, BYTES[:, :1])
