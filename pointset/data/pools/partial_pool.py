"""A pool in the making: rows written as they come, in any order, and found again after the process was killed.

A shape is finished once its line is in `journal.jsonl`, which is written after its rows; half a line counts for
nothing. When all is done the manifest is written, and what has a manifest needs only be renamed. So whatever the
moment at which the process ends, the next one goes on with the shapes that have no line.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pointset.data.pools.manifest import FILE, FORMAT, Entry, Manifest, Plan, read_manifest
from pointset.data.pools.shape_jobs import Sampled
from pointset.data.pools.sources import Source, recheck
from pointset.errors import PointsetError

JOURNAL = "journal.jsonl"


class PartialPool:
    """A folder that becomes a pool; the caller holds its lock.

    Attributes:
        finished: what the journal says, by row.
    """

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder, self.plan = folder, plan
        self.finished: dict[int, Entry] = {}
        self._files: dict[str, BinaryIO] = {}
        self._row_bytes = plan.sampling.points * 3 * 4

    @contextlib.contextmanager
    def opened(self) -> Iterator["PartialPool"]:
        """Take up what is there, and keep the files open to write to.

        Raises:
            PointsetError: the disk is full or read-only.
        """
        with contextlib.ExitStack() as stack:
            with told_plainly(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                for name in self.plan.sampling.arrays:
                    self._files[name] = stack.enter_context(self._open_array(name))
                self.finished = self._read_journal()
                self._require_space(len(self.plan.shapes) - len(self.finished))
                self._journal = stack.enter_context((self.folder / JOURNAL).open("a", encoding="utf-8"))
            yield self

    def write(self, sampled: Sampled) -> None:
        """Keep the points of one shape: first its rows, then its line in the journal."""
        blocks = {name: array.astype("<f4").tobytes() for name, array in sampled.arrays.items()}
        checksums = {name: checksum(block) for name, block in blocks.items()}
        line = json.dumps({"row": sampled.row, "source": vars(sampled.source), "checksums": checksums})
        with told_plainly(self.folder):
            for name, block in blocks.items():
                self._files[name].seek(self._offset(name, sampled.row))
                self._files[name].write(block)
                self._files[name].flush()
            self._journal.write(line + "\n")
            self._journal.flush()
        self.finished[sampled.row] = self.entry(sampled.row, sampled.source, checksums)

    def finish(self, failed: Sequence[Sampled]) -> None:
        """Write the arrays and the manifest, leaving out the failed shapes; `publish` does the rest."""
        reasons = {one.row: self.entry(one.row, one.source, {}, one.reason) for one in failed}
        entries = [reasons.get(row) or self.finished[row] for row in range(len(self.plan.shapes))]
        manifest = Manifest(str(self.plan.folder), self.plan.classes, self.plan.sampling, tuple(entries))
        with told_plainly(self.folder):
            for name, file in self._files.items():
                if failed:
                    self._copy_rows(name, sorted(self.finished))
                else:
                    os.fsync(file.fileno())
                    self._working(name).replace(self.folder / f"{name}.npy")
            write_text(self.folder / FILE, manifest.as_text())

    def entry(self, row: int, source: Source, checksums: dict[str, str], skipped: str = "") -> Entry:
        """A shape's entry in the manifest."""
        shape = self.plan.shapes[row]
        return Entry(shape.name, shape.label, str(shape.path), source, checksums, skipped)

    def _open_array(self, name: str) -> BinaryIO:
        """The array [N, P, 3] to fill: what a stopped run left, or a new and empty one."""
        path, whole = self._working(name), self.folder / f"{name}.npy"
        header = npy_header((len(self.plan.shapes), self.plan.sampling.points, 3))
        size = len(header) + len(self.plan.shapes) * self._row_bytes
        if not path.exists() and whole.exists():  # stopped after the last row, before the manifest
            whole.replace(path)
        if not is_whole(path, header, size):
            (self.folder / JOURNAL).unlink(missing_ok=True)
            with path.open("wb") as file:
                file.write(header)
                file.truncate(size)
        return path.open("r+b")

    def _read_journal(self) -> dict[int, Entry]:
        """The shapes whose line is whole, whose rows are what it says and whose meshes have not changed since."""
        journal = self.folder / JOURNAL
        head = json.dumps({"format": FORMAT})
        lines = journal.read_text(encoding="utf-8").split("\n") if journal.exists() else []
        if not lines or lines[0] != head:
            write_text(journal, head + "\n")
            return {}
        whole = lines[1:-1]  # after the last newline there is half a line, or nothing
        write_text(journal, "\n".join([head, *whole]) + "\n")
        return {row: entry for row, entry in map(self._entry_of, whole) if entry}

    def _entry_of(self, line: str) -> tuple[int, Entry | None]:
        """A shape that the journal says is finished; None if its rows are not those, or its mesh is another now."""
        try:
            fields = json.loads(line)
            row, source, checksums = fields["row"], Source(**fields["source"]), fields["checksums"]
            found = {name: checksum(self._read_row(name, row)) for name in self._files}
            now = recheck(self.plan.shapes[row].path, source)
        except (ValueError, KeyError, TypeError, IndexError):  # written when the power went
            return -1, None
        return row, self.entry(row, now, checksums) if now and found == checksums else None

    def _read_row(self, name: str, row: int) -> bytes:
        self._files[name].seek(self._offset(name, row))
        return self._files[name].read(self._row_bytes)

    def _copy_rows(self, name: str, rows: Sequence[int]) -> None:
        """Write the array without the rows of the shapes that were left out."""
        with (self.folder / f"{name}.npy").open("wb") as file:
            file.write(npy_header((len(rows), self.plan.sampling.points, 3)))
            for row in rows:
                file.write(self._read_row(name, row))
            file.flush()
            os.fsync(file.fileno())

    def _require_space(self, rows: int) -> None:
        needed = rows * self._row_bytes * len(self._files)
        free = shutil.disk_usage(self.folder).free
        if needed > free:
            raise OSError(errno.ENOSPC, f"{needed / 1e6:,.0f} MB needed, {free / 1e6:,.0f} MB free")

    def _offset(self, name: str, row: int) -> int:
        return len(npy_header((len(self.plan.shapes), self.plan.sampling.points, 3))) + row * self._row_bytes

    def _working(self, name: str) -> Path:
        return self.folder / f"{name}.rows"


def partial_folder(folder: Path) -> Path:
    """Where a pool is made."""
    return folder.with_name(folder.name + ".partial")


def publish(folder: Path) -> bool:
    """Turn what has been made into the pool, if its manifest is written.

    Returns:
        Whether it was.
    """
    partial = partial_folder(folder)
    with told_plainly(folder):
        try:
            manifest = read_manifest(partial)
        except PointsetError:
            (partial / FILE).unlink(missing_ok=True)
            return False
        for name in (*(f"{name}.rows" for name in manifest.sampling.arrays), JOURNAL):
            (partial / name).unlink(missing_ok=True)
        partial.replace(folder)
    return True


def checksum(block: "bytes | memoryview") -> str:
    """BLAKE2b of a row, 32 hexadecimal digits."""
    return hashlib.blake2b(block, digest_size=16).hexdigest()


def npy_header(shape: tuple[int, int, int]) -> bytes:
    """How a .npy file with a little-endian float32 array of this shape begins."""
    from io import BytesIO

    stream = BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return stream.getvalue()


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    beside = path.with_name(path.name + ".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


@contextlib.contextmanager
def told_plainly(folder: Path) -> Iterator[None]:
    """Turn what a disk refuses into one sentence."""
    try:
        yield
    except OSError as error:
        raise PointsetError(
            f"cannot write {folder} ({error.strerror or error}): make room there, or set POINTSET_HOME to a folder "
            "that you may write to; finished shapes are kept"
        ) from error


def is_whole(path: Path, header: bytes, size: int) -> bool:
    """Whether a file is there, begins with the header and has the size."""
    try:
        with path.open("rb") as file:
            return file.read(len(header)) == header and path.stat().st_size == size
    except OSError:
        return False
