"""A pool in the making: one file per finished shape, put together when all are there.

A shape's file is an archive and, behind it, the archive's SHA-256: a file that a kill, a power cut or a bad disk
damaged is recognised and made again.
"""

import errno
import hashlib
import json
import shutil
import zipfile
import zlib
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pointset.data.pools.manifest import FILE, Entry, Manifest
from pointset.data.pools.plan import Plan
from pointset.data.pools.shapes import Result
from pointset.data.pools.sources import Source, recheck
from pointset.runs import digests
from pointset.runs.atomic import sync_folder

DIGEST = hashlib.sha256().digest_size
UNREADABLE = (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error)


class PartialPool:
    """The folder beside a pool in which it is made, and the `finished` shapes by row; the caller holds the lock."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.folder = partial_folder(plan.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.whole = self.folder.with_suffix(".whole")
        shutil.rmtree(self.whole, ignore_errors=True)  # of a build that was killed
        found = {row: self._read_entry(row) for row in range(len(plan.shapes)) if self._path(row).exists()}
        self.finished = {row: entry for row, entry in found.items() if entry}
        self._require_space()

    def write(self, result: Result) -> None:
        """Write the points of one shape."""
        arrays = {name: array.astype("<f4") for name, array in result.arrays.items()}
        stream = BytesIO()
        np.savez(stream, **arrays, source=np.array(json.dumps(vars(result.source))))  # type: ignore[arg-type]
        archive = stream.getvalue()
        self._path(result.row).write_bytes(archive + hashlib.sha256(archive).digest())
        self.finished[result.row] = self._entry(result.row, result.source, arrays)

    def publish(self, failed: Iterable[Result]) -> None:
        """Make the pool of the finished shapes."""
        entries = dict(self.finished)
        for one in failed:
            shape = self.plan.shapes[one.row]
            entries[one.row] = Entry(shape.name, shape.label, str(shape.path), one.source, skipped=one.reason)
        manifest = Manifest(
            str(self.plan.root), self.plan.classes, self.plan.sampling, tuple(entries[row] for row in sorted(entries))
        )
        manifest.check_widths()
        whole = self.whole
        try:
            whole.mkdir()
            for name in self.plan.sampling.arrays:
                with (whole / f"{name}.npy").open("wb") as file:
                    file.write(manifest.header(name))
                    for row in sorted(self.finished):
                        file.write(self._read(row)[0][name].tobytes())
            digests.fill(whole, {FILE: manifest.as_text().encode()})
            sync_folder(whole)
            whole.replace(self.plan.folder)
        finally:  # on a full disk this makes room
            shutil.rmtree(whole, ignore_errors=True)
        shutil.rmtree(self.folder)

    def _path(self, row: int) -> Path:
        return self.folder / f"{row}.npz"

    def _read(self, row: int) -> tuple[dict[str, NDArray[np.float32]], Source]:
        found = self._path(row).read_bytes()
        archive, digest = found[:-DIGEST], found[-DIGEST:]
        if hashlib.sha256(archive).digest() != digest:
            raise ValueError("it is damaged")
        with np.load(BytesIO(archive), allow_pickle=False) as content:
            arrays = {name: content[name] for name in self.plan.sampling.arrays}
            return arrays, Source(**json.loads(str(content["source"])))

    def _read_entry(self, row: int) -> Entry | None:
        """A finished shape; None if its points cannot be read, or its source has changed."""
        try:
            arrays, source = self._read(row)
        except UNREADABLE:
            return None
        now = recheck(self.plan.shapes[row].path, source)
        return self._entry(row, now, arrays) if now else None

    def _entry(self, row: int, source: Source, arrays: dict[str, NDArray[np.float32]]) -> Entry:
        shape = self.plan.shapes[row]
        checksums = {name: checksum(array.tobytes()) for name, array in arrays.items()}
        size = len(arrays["points"]) if self.plan.sampling.points is None else None
        width = arrays["features"].shape[1] if "features" in arrays else None
        return Entry(shape.name, shape.label, str(shape.path), source, checksums, size=size, width=width)

    def _require_space(self) -> None:
        """Room for the missing shapes, and for all of them once more in the pool; sizes of clouds are not known yet."""
        shapes, sampling = len(self.plan.shapes), self.plan.sampling
        needed = (2 * shapes - len(self.finished)) * (sampling.points or 0) * 3 * 4 * len(sampling.arrays)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free")


def partial_folder(folder: Path) -> Path:
    """The folder in which a pool is made."""
    return folder.with_name(folder.name + ".partial")


def checksum(block: bytes) -> str:
    """BLAKE2b of a shape's points, 32 hexadecimal digits."""
    return hashlib.blake2b(block, digest_size=16).hexdigest()
