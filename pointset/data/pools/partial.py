"""An unfinished pool: a journal of finished shapes, from which the pool is written when all are done."""

import dataclasses
import errno
import shutil
from collections.abc import Iterable
from pathlib import Path

from pointset.data.pools.journal import Finished, Journal
from pointset.data.pools.manifest import FILE, Entry, Manifest
from pointset.data.pools.plan import Plan
from pointset.data.pools.shapes import Result
from pointset.data.pools.sources import recheck
from pointset.runs import digests
from pointset.runs.atomic import sync_folder


class PartialPool:
    """The temporary folder of a pool, and its `finished` shapes by row; the caller holds the lock."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.folder = partial_folder(plan.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.whole = self.folder.with_suffix(".whole")
        shutil.rmtree(self.whole, ignore_errors=True)  # left by a killed build
        self._journal = Journal(self.folder, plan.sampling.arrays)
        found = map(self._rechecked, self._journal.read())
        self.finished = {shape.row: shape for shape in found if shape}
        self._require_space()

    def write(self, result: Result) -> None:
        """Save the points of one shape."""
        self.finished[result.row] = self._journal.add(result.row, result.source, result.arrays)

    def publish(self, failed: Iterable[Result]) -> None:
        """Write the pool of the finished shapes, and remove the temporary folder."""
        in_order = [self.finished[row] for row in sorted(self.finished)]
        entries = {shape.row: self._entry(shape) for shape in in_order}
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
                    file.writelines(self._journal.blocks(name, in_order))
            digests.fill(whole, {FILE: manifest.as_text().encode()})
            sync_folder(whole)
            whole.replace(self.plan.folder)
        finally:  # frees space if the disk is full
            shutil.rmtree(whole, ignore_errors=True)
        shutil.rmtree(self.folder)

    def _rechecked(self, shape: Finished) -> Finished | None:
        """The shape with the current modification time of its file; None if the file has changed."""
        now = recheck(self.plan.shapes[shape.row].path, shape.source)
        return dataclasses.replace(shape, source=now) if now else None

    def _entry(self, finished: Finished) -> Entry:
        shape, blocks = self.plan.shapes[finished.row], finished.blocks
        checksums = {name: block.checksum for name, block in blocks.items()}
        size = blocks["points"].rows if self.plan.sampling.points is None else None
        width = blocks["features"].width if "features" in blocks else None
        return Entry(shape.name, shape.label, str(shape.path), finished.source, checksums, size=size, width=width)

    def _require_space(self) -> None:
        """Raise an OSError unless the disk has room for the missing shapes and for the pool; clouds are not counted."""
        shapes, sampling = len(self.plan.shapes), self.plan.sampling
        needed = (2 * shapes - len(self.finished)) * (sampling.points or 0) * 3 * 4 * len(sampling.arrays)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free")


def partial_folder(folder: Path) -> Path:
    """The temporary folder of a pool."""
    return folder.with_name(folder.name + ".partial")
