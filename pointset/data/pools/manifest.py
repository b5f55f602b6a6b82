"""The files of a pool: arrays of the points of all shapes, and a manifest of the shapes.

A pool is a folder with `points.npy`, float32 [M, P, 3] for sampled meshes or [T, 3] for concatenated clouds; on request
`normals.npy` of the same shape, and `features.npy` with f numbers per point; and `manifest.json`, with digests of each
shape's numbers and of its file, for `pointset data verify`. Pools of another format are made again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
import numpy as np
from numpy.typing import NDArray

import pointset
from pointset.data.pool import digest_of, one_width
from pointset.data.pools.shapes import PoolEntry, Sampling, hash_source
from pointset.errors import QUOTED, PointsetError, described, one_line
from pointset.runs.files import read_file
from pointset.runs.progress import followed

POOL_FORMAT = 4
"""Version of the pools' files and of the readers' and samplers' results; pools of another have other folders."""
MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """The dataset, the sampling and the shapes of a finished pool."""

    folder: str
    classes: tuple[str, ...]
    sampling: Sampling
    entries: tuple[PoolEntry, ...]

    @cached_property  # used once per shape, so computing it each time would take quadratic time
    def kept(self) -> list[PoolEntry]:
        """The shapes that have points, in order."""
        return [entry for entry in self.entries if not entry.skipped]

    @property
    def failures(self) -> dict[str, str]:
        """The reasons why other shapes could not be used, by name."""
        return {entry.name: entry.skipped for entry in self.entries if entry.skipped}

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The first point of each kept shape among all points, and the number of all points, [M + 1]."""
        return np.cumsum([0, *(self.sampling.points or entry.size or 0 for entry in self.kept)])

    def shape(self, array: str) -> tuple[int, ...]:
        """The shape of an array; a PointsetError if the shapes differ in their number of features."""
        columns = 3
        if array == "features":
            names = ", ".join(self.sampling.features)
            columns = one_width(names, {entry.file: entry.width or 0 for entry in self.kept})
        points = self.sampling.points
        return (int(self.offsets[-1]), columns) if points is None else (len(self.kept), points, columns)

    def open_arrays(self, folder: Path) -> dict[str, NDArray[Any]]:
        """Memory-map the arrays; a PointsetError if one has another type or size than was written."""
        arrays = {}
        for name in self.sampling.arrays:
            try:
                array = np.load(folder / f"{name}.npy", mmap_mode="r")
            except (OSError, ValueError, EOFError) as error:
                raise PointsetError(f"{name}.npy cannot be read ({one_line(error, QUOTED)})") from error
            if (array.dtype, array.shape) != (np.dtype("<f4"), self.shape(name)):
                raise PointsetError(f"{name}.npy has {described(array)}, and {list(self.shape(name))} were written")
            if not all(name in entry.checksums for entry in self.kept):
                raise PointsetError(f"{MANIFEST_FILE} lacks checksums of {name}.npy")
            arrays[name] = array
        return arrays

    def as_json(self) -> bytes:
        """The manifest as a file."""
        head = {"format": POOL_FORMAT, "version": pointset.__version__, "folder": self.folder, "classes": self.classes}
        content = {**head, **self.sampling.as_dict(), "shapes": self.entries}
        return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def write_header(file: BinaryIO, shape: tuple[int, ...]) -> None:
    """Write the start of the file of an array."""
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})


def read_manifest(folder: Path) -> Manifest:
    """Read a pool's manifest; a PointsetError if it is missing, damaged or of another format."""
    try:
        content = msgspec.json.decode(read_file(folder / MANIFEST_FILE))
        if content["format"] != POOL_FORMAT:
            raise PointsetError(f"it has format {content['format']}, and this version of pointset reads {POOL_FORMAT}")
        entries = msgspec.convert(content["shapes"], tuple[PoolEntry, ...])
        return Manifest(content["folder"], tuple(content["classes"]), msgspec.convert(content, Sampling), entries)
    except FileNotFoundError as error:
        raise PointsetError(f"{MANIFEST_FILE} is missing") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {one_line(error, QUOTED)}"
        raise PointsetError(f"its {MANIFEST_FILE} cannot be read: {reason}") from error


def faults_of_pool(folder: Path, *, progress: bool = True) -> Iterator[str]:
    """What differs from the manifest, as sentences: reads every number of a pool and every source file."""
    try:
        manifest = read_manifest(folder)
        arrays = manifest.open_arrays(folder)
    except PointsetError as error:
        yield str(error)
        return
    for name, array in arrays.items():
        rows = array.reshape(int(manifest.offsets[-1]), -1)
        kept = followed(manifest.kept, f"checking {name}", "shape", len(manifest.kept), show=progress)
        for index, entry in enumerate(kept):
            if digest_of(rows[manifest.offsets[index] : manifest.offsets[index + 1]]) != entry.checksums.get(name):
                yield f"{name}.npy is damaged in the points of {entry.name}"
    for entry in followed(manifest.entries, "reading files", "shape", len(manifest.entries), show=progress):
        try:
            if hash_source(Path(entry.file)) != entry.source.blake2b:
                yield f"{entry.file} has changed since the pool was made"
        except OSError as error:
            if entry.source.blake2b is not None:
                yield f"{entry.file} cannot be read any more: {error.strerror or error}"
