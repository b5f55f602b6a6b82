"""The manifest of a finished pool, which is checked against the pool's arrays and its plan.

A pool is a folder with `points.npy`, float32 [M, P, 3] for sampled meshes or [T, 3] for concatenated clouds; on request
`normals.npy` of the same shape, and `features.npy` with f numbers per point; and `manifest.json`, whose digest is in
SHA256SUMS. The manifest has digests of the arrays for each shape. Pools of another format are refused; the version of
the library is recorded only for information.
"""

import json
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

import pointset
from pointset.data.pools.plan import FORMAT, Plan, Sampling, identity
from pointset.data.pools.sources import Source
from pointset.errors import QUOTED, PointsetError, one_line
from pointset.runs import digests

FILE = "manifest.json"


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

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data; `width` only if set, so that manifests of earlier versions stay the same."""
        found = {**vars(self), "source": vars(self.source)}
        return found if self.width else {name: value for name, value in found.items() if name != "width"}


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

    def width(self, array: str) -> int:
        """Numbers per point in an array."""
        return self.kept[0].width or 3 if array == "features" and self.kept else 3

    def header(self, array: str) -> bytes:
        """Header of an array's .npy file, little-endian float32."""
        points = self.sampling.points
        count = (sum(self.sizes),) if points is None else (len(self.kept), points)
        stream = BytesIO()
        described = {"descr": "<f4", "fortran_order": False, "shape": (*count, self.width(array))}
        np.lib.format.write_array_header_1_0(stream, described)
        return stream.getvalue()

    def check_widths(self) -> None:
        """Raise a PointsetError unless all shapes have the same number of features."""
        for entry in self.kept:
            if entry.width != self.kept[0].width:
                first, odd = (f"{one.width} in {one.file}" for one in (self.kept[0], entry))
                raise PointsetError(
                    f"{', '.join(self.sampling.features)} are {first} and {odd}: give all files the same number"
                )

    def check(self, plan: Plan) -> None:
        """Raise a PointsetError unless the pool was made by this plan."""
        names = [(entry.name, entry.label, entry.file) for entry in self.entries]
        if identity(self.folder, self.classes, self.sampling, names) != plan.identity:
            raise PointsetError(f"its {FILE} describes other shapes than its name")

    def check_arrays(self, folder: Path) -> None:
        """Raise a PointsetError if an array is missing, truncated or of another shape."""
        for name in self.sampling.arrays:
            header = self.header(name)
            size = len(header) + self.width(name) * 4 * sum(self.sizes)
            path = folder / f"{name}.npy"
            if not path.is_file():
                raise PointsetError(f"{path.name} is missing")
            found = path.stat().st_size
            if found != size:
                raise PointsetError(f"{path.name} is damaged: expected {size} bytes, found {found}")
            with path.open("rb") as file:
                if file.read(len(header)) != header:
                    raise PointsetError(f"{path.name} is damaged at its beginning")

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
        names = [name for name in Sampling.__dataclass_fields__ if name != "features"]
        features = tuple(content.get("features", ()))
        sampling = Sampling(**{name: content[name] for name in names}, features=features)
        return Manifest(content["folder"], tuple(content["classes"]), sampling, tuple(entries))
    except digests.DamagedError as error:
        raise PointsetError(error.fault) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{type(error).__name__}: {one_line(error, QUOTED)}"
        raise PointsetError(f"its {FILE} cannot be read: {reason}") from error
