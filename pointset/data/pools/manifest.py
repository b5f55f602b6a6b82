"""The manifest of a finished pool, which is checked against the pool's arrays, its plan and the shapes' files.

A pool is a folder with `points.npy`, float32 [M, P, 3] for sampled meshes or [T, 3] for concatenated clouds; on request
`normals.npy` of the same shape, and `features.npy` with f numbers per point; and `manifest.json`, whose digest is in
SHA256SUMS. The manifest has digests of the arrays for each shape. Pools of another format are refused; the version of
the library is recorded only for information.
"""

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import pointset
from pointset.data.pools.plan import FORMAT, TYPES, Plan, Sampling
from pointset.data.readers.trimesh_meshes import files_beside
from pointset.errors import QUOTED, PointsetError, one_line
from pointset.runs import digests

FILE = "manifest.json"


@dataclass(frozen=True)
class Source:
    """One version of a shape's file."""

    bytes: int
    """Size, including external buffers of a .gltf or .glb file."""
    modified_ns: int
    """Time of the latest modification."""
    blake2b: str | None
    """Digest of the contents; None if they could not be read."""

    def current(self, path: Path) -> "Source | None":
        """This version with the current time of the file; None if the contents have changed.

        The contents are read only if size or time differ.
        """
        try:
            size, modified = _size_and_time(path)
            if (size, modified) == (self.bytes, self.modified_ns):
                return self
            return Source(size, modified, self.blake2b) if hash_source(path) == self.blake2b else None
        except OSError:
            return self if self.blake2b is None else None  # unchanged if it could not be read before either


def describe_source(path: Path) -> Source:
    """The current version of a file; an OSError if it cannot be read."""
    return Source(*_size_and_time(path), hash_source(path))


def hash_source(path: Path) -> str:
    """BLAKE2b digest of the contents, 32 hexadecimal digits; an OSError if they cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def _size_and_time(path: Path) -> tuple[int, int]:
    facts = [file.stat() for file in _files(path)]
    return sum(fact.st_size for fact in facts), max(fact.st_mtime_ns for fact in facts)


def _files(path: Path) -> list[Path]:
    """The file and, for .gltf and .glb, the external buffers that it names."""
    return [path, *(files_beside(path) if path.suffix.lower() in (".gltf", ".glb") else ())]


def checksum(block: bytes) -> str:
    """BLAKE2b digest of points, 32 hexadecimal digits."""
    return hashlib.blake2b(block, digest_size=16).hexdigest()


@dataclass(frozen=True)
class Entry:
    """One shape of a pool."""

    name: str
    label: int
    file: str
    source: Source
    checksums: dict[str, str] = field(default_factory=dict)
    """BLAKE2b digests of its points in each array."""
    skipped: str = ""
    """The reason why it has no points; empty if it has some."""
    size: int | None = None
    """Number of points, for clouds."""
    width: int | None = None
    """Number of features per point, f, if any."""

    def current(self) -> "Entry | None":
        """The entry with the current time of its file; None if the file has changed."""
        source = self.source.current(Path(self.file))
        if source is self.source:
            return self
        return dataclasses.replace(self, source=source) if source else None

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data; `width` only if set, so that manifests of earlier versions stay the same."""
        fields = {**vars(self), "source": vars(self.source)}
        return fields if self.width else {name: value for name, value in fields.items() if name != "width"}


@dataclass(frozen=True)
class Manifest:
    """The dataset, the sampling and the shapes of a finished pool."""

    folder: str
    classes: tuple[str, ...]
    sampling: Sampling
    entries: tuple[Entry, ...]

    @cached_property  # used once per shape, so computing it each time would take quadratic time
    def kept(self) -> list[Entry]:
        """The shapes that have points, in order."""
        return [entry for entry in self.entries if not entry.skipped]

    @cached_property
    def skipped(self) -> list[Entry]:
        """The shapes that could not be used."""
        return [entry for entry in self.entries if entry.skipped]

    @cached_property
    def sizes(self) -> list[int]:
        """Number of points of each kept shape."""
        return [self.sampling.points or entry.size or 0 for entry in self.kept]

    def columns(self, array: str) -> tuple[int, ...]:
        """The shape of the numbers of one point in an array."""
        return (self.kept[0].width or 3,) if array == "features" and self.kept else (3,)

    def bytes_per_point(self, array: str) -> int:
        """Bytes of the numbers of one point in an array."""
        return np.dtype(TYPES[array]).itemsize * math.prod(self.columns(array))

    def header(self, array: str) -> bytes:
        """Header of an array's .npy file."""
        points = self.sampling.points
        count = (sum(self.sizes),) if points is None else (len(self.kept), points)
        stream = BytesIO()
        described = {"descr": TYPES[array], "fortran_order": False, "shape": (*count, *self.columns(array))}
        np.lib.format.write_array_header_1_0(stream, described)
        return stream.getvalue()

    def check_widths(self) -> None:
        """Raise a PointsetError unless all shapes have the same number of features."""
        for entry in self.kept:
            if entry.width != self.kept[0].width:
                first, odd = (f"{other.width} in {other.file}" for other in (self.kept[0], entry))
                raise PointsetError(
                    f"{', '.join(self.sampling.features)} are {first} and {odd}: give all files the same number"
                )

    def check(self, plan: Plan) -> None:
        """Raise a PointsetError unless the pool was made by this plan."""
        shapes = [(entry.name, entry.label, entry.file) for entry in self.entries]
        planned = [(shape.name, shape.label, str(shape.path)) for shape in plan.shapes]
        mine, theirs = (self.folder, self.classes, self.sampling), (str(plan.root), plan.classes, plan.sampling)
        if (*mine, shapes) != (*theirs, planned):
            raise PointsetError(f"its {FILE} describes other shapes than its name")

    def check_arrays(self, folder: Path) -> None:
        """Raise a PointsetError if an array is missing, truncated or of another shape."""
        for name in self.sampling.arrays:
            header, path = self.header(name), folder / f"{name}.npy"
            expected = len(header) + self.bytes_per_point(name) * sum(self.sizes)
            if not path.is_file():
                raise PointsetError(f"{path.name} is missing")
            if (size := path.stat().st_size) != expected:
                raise PointsetError(f"{path.name} is damaged: expected {expected} bytes, found {size}")
            with path.open("rb") as file:
                if file.read(len(header)) != header:
                    raise PointsetError(f"{path.name} is damaged at its beginning")

    def current(self) -> "Manifest":
        """The manifest with the current times of the shapes' files; a PointsetError if one of them has changed."""
        entries = [entry.current() for entry in self.entries]
        changed = [old.file for old, entry in zip(self.entries, entries, strict=True) if entry is None]
        if changed:
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            raise PointsetError(f"{changed[0]}{more} has changed since the pool was made")
        same = all(old is entry for old, entry in zip(self.entries, entries, strict=True))
        return self if same else dataclasses.replace(self, entries=tuple(filter(None, entries)))

    def as_text(self) -> str:
        """The manifest as JSON, with one line per shape."""
        head = {
            "format": FORMAT,
            "version": pointset.__version__,
            "folder": self.folder,
            "classes": self.classes,
            **self.sampling.as_dict(),
            "skipped": [entry.name for entry in self.skipped],
        }
        lines = [json.dumps(entry.as_dict(), ensure_ascii=False) for entry in self.entries]
        body = ",\n  ".join(lines)
        return f'{json.dumps(head, indent=1, ensure_ascii=False)[:-2]},\n "shapes": [\n  {body}\n ]\n}}\n'


def read_manifest(folder: Path) -> Manifest:
    """Read a pool's manifest.

    Raises:
        PointsetError: the manifest is missing, damaged or of another format.
    """
    try:
        content = json.loads(digests.read(folder / FILE, "build the pool again"))
        if content["format"] != FORMAT:
            raise PointsetError(f"it has format {content['format']}, and this version of pointset reads {FORMAT}")
        entries = [Entry(**{**shape, "source": Source(**shape["source"])}) for shape in content["shapes"]]
        known = [name for name in Sampling.__dataclass_fields__ if name in content or name not in Sampling.LATER]
        sampling = msgspec.convert({name: content[name] for name in known}, Sampling)
        return Manifest(content["folder"], tuple(content["classes"]), sampling, tuple(entries))
    except digests.DamagedError as error:
        raise PointsetError(error.fault) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {one_line(error, QUOTED)}"
        raise PointsetError(f"its {FILE} cannot be read: {reason}") from error
