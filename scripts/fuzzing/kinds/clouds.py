"""Kinds of files of points, each read in pieces and as a whole."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fuzzing import mutations
from fuzzing.kinds.base import FileKind, same_numbers
from fuzzing.kinds.cloud_seeds import NPY_FILES, NPZ_FILES, XYZ_FILES, pcd_files
from fuzzing.kinds.numpy_changes import npy_mutation, repacked
from fuzzing.kinds.parts import header_and_body
from fuzzing.kinds.ply_seeds import cloud_files
from fuzzing.oracles import numpy_files, pcd, ply, xyz
from fuzzing.verdicts import message_fault
from pointset.data.readers.clouds import Cloud
from pointset.data.readers.scans import open_scan, read_cloud
from pointset.errors import PointsetError

PIECE = 4
FARTHEST = 1000
"""Extents that a cloud may lie from the origin before a refusal of its float32 is fair."""


@dataclass
class Readings:
    """One file read in pieces, as a whole, and with normals: results, or the reason of a refusal."""

    points: np.ndarray
    whole: Cloud | str
    oriented: Cloud | str


def read(path: Path) -> Readings:
    """All readings of a file; a refusal if it cannot be read in pieces."""
    content = path.read_bytes()
    try:
        points = np.concatenate(list(open_scan(path, piece=PIECE)()))
    except PointsetError:
        if not isinstance(whole(path, False, content), str):
            raise AssertionError("read_cloud reads what open_scan refuses") from None
        raise
    return Readings(points, whole(path, False, content), whole(path, True, content))


def whole(path: Path, normals: bool, content: bytes) -> Cloud | str:
    """A file read as a whole, or the message of the refusal."""
    try:
        return read_cloud(path, normals=normals)
    except PointsetError as error:
        if fault := message_fault(str(error), path, content):
            raise AssertionError(fault) from error
        return str(error)


def difference(ours: Readings, truth: tuple[np.ndarray, np.ndarray | None]) -> str:
    """Where the readings differ from an oracle's points and normals."""
    points, normals = truth
    if ours.points.shape != points.shape or not same_numbers(ours.points, points):
        return f"points {ours.points.tolist()}, not {points.tolist()}"
    if isinstance(ours.whole, str):
        return "" if beyond_float32(points) else f"read_cloud refuses: {ours.whole}"
    with np.errstate(over="ignore"):
        if not np.array_equal(ours.whole.points, points.astype(np.float32)):
            return f"read_cloud gives {ours.whole.points.tolist()}, not {points.tolist()}"
    if normals is None:
        return "" if isinstance(ours.oriented, str) else "normals of a file that has none"
    return normals_difference(ours.oriented, normals)


def beyond_float32(points: np.ndarray) -> bool:
    """Whether float32 may be refused for some points."""
    largest = float(np.abs(points).max())
    return largest > 3.4e38 or largest > FARTHEST * float(np.ptp(points, axis=0).max()) or largest < 1e-30


def normals_difference(ours: Cloud | str, normals: np.ndarray) -> str:
    """Where normals differ from an oracle's, which have any length."""
    with np.errstate(all="ignore"):
        lengths = np.linalg.norm(normals, axis=1, keepdims=True)
        fit = bool(((lengths > 1e-15) & (lengths < 1e15)).all())
        if isinstance(ours, str):
            return f"normals refused: {ours}" if fit else ""
        if ours.normals is None or not np.isfinite(lengths).all():
            return "normals missing or not finite" if fit else ""
        same = np.allclose(ours.normals, normals / lengths, rtol=0, atol=1e-5)
    return "" if same or not fit else f"normals {ours.normals.tolist()}, not {normals.tolist()}"


def kind(name: str, suffix: str, seeds: list[bytes], changes: list[mutations.Mutation], oracle: object) -> FileKind:
    """A kind of files of points."""
    changes = [*changes, mutations.joined(seeds)]
    return FileKind(name, suffix, seeds, changes, read, oracle, difference)  # type: ignore[arg-type]


PLY_WORDS = [
    b"float",
    b"double",
    b"uchar",
    b"int",
    b"list",
    b"property",
    b"element",
    b"vertex",
    b"face",
    b"x",
    b"comment",
]
PLY_WORDS += [
    b"ascii",
    b"binary_little_endian",
    b"binary_big_endian",
    b"end_header",
    b"1.0",
    b"property float w\n",
    b"nx",
]
PLY_CHANGES = [mutations.with_words(PLY_WORDS), mutations.with_comments(b"comment")]
PCD_WORDS = [
    b"x",
    b"_",
    b"normal_x",
    b"F",
    b"U",
    b"I",
    b"4",
    b"8",
    b"1",
    b"2",
    b"ascii",
    b"binary",
    b"binary_compressed",
]
PCD_WORDS += [
    b"zip",
    b"DATA",
    b"POINTS",
    b"WIDTH",
    b"COUNT",
    b"FIELDS",
    b"HEIGHT",
    b"DATA ascii\n",
    b"9999999999",
    b".7",
]
PCD_CHANGES = [mutations.with_words(PCD_WORDS), mutations.with_comments(b"#")]
XYZ_WORDS = [b"1,5", b",", b";", b"//", b"#", b",,", b"1;5", b", ", b"x", b"1, 2", b"0 0 0\n", b"0,0,0\n", b"1 ,"]
PIECES = [mutations.replace_number([b"1,5", b"1;5", b"1 5", b", 5", b"1 ,5", b"5,", b"//", b"#"])]

PLY_CLOUD = kind("ply-cloud", ".ply", cloud_files("ascii"), [*mutations.TEXT, *PLY_CHANGES], ply.read_cloud)
PLY_CLOUD_BINARY = kind(
    "ply-cloud-binary",
    ".ply",
    [*cloud_files("binary_little_endian"), *cloud_files("binary_big_endian")],
    [header_and_body(b"end_header", PLY_CHANGES)] * 20,
    ply.read_cloud,
)
PCD = kind("pcd", ".pcd", pcd_files("ascii"), [*mutations.TEXT, *PCD_CHANGES], pcd.read)
PCD_BINARY = kind("pcd-binary", ".pcd", pcd_files("binary"), [header_and_body(b"DATA", PCD_CHANGES)] * 20, pcd.read)
PACKED = pcd_files("binary_compressed")
PCD_PACKED = kind("pcd-packed", ".pcd", PACKED, [header_and_body(b"DATA", PCD_CHANGES)] * 20, pcd.read)
NPY = kind("npy", ".npy", NPY_FILES, [npy_mutation] * 20, numpy_files.read_npy)
NPZ = kind("npz", ".npz", NPZ_FILES, [*[repacked] * 20, *mutations.BINARY], numpy_files.read_npz)
XYZ = kind(
    "xyz",
    ".xyz",
    XYZ_FILES,
    [
        *mutations.TEXT,
        mutations.with_words(XYZ_WORDS),
        *PIECES,
        *[mutations.with_comments(mark) for mark in (b"#", b"//")] * 2,
    ],
    xyz.read,
)
CLOUDS = (PLY_CLOUD, PLY_CLOUD_BINARY, PCD, PCD_BINARY, PCD_PACKED, NPY, NPZ, XYZ)
