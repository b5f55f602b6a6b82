"""Append-only files of finished shapes: one file per array and a journal, for any number of shapes.

The file of an array holds points in the order in which shapes are finished. The journal has one line per shape: a
digest of the line, and a description with digests of the points, written after them. Shapes that a kill, a power cut or
a bad disk damaged fail a digest and are ignored.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from pointset.data.pools.sources import Source
from pointset.errors import PointsetError

LINES = "finished.txt"


@dataclass(frozen=True, slots=True)
class Block:
    """The points of one shape in the file of an array."""

    start: int
    """Offset in the file, in bytes."""
    rows: int
    width: int
    checksum: str

    def read(self, file: BinaryIO) -> bytes:
        """Read the bytes of the block; a PointsetError if they are damaged."""
        file.seek(self.start)
        found = file.read(4 * self.rows * self.width)
        if checksum(found) != self.checksum:
            raise PointsetError(
                f"{file.name} is damaged at byte {self.start:,}: run the command again, which samples that shape again"
            )
        return found


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished shape."""

    row: int
    """Index of the shape in the plan."""
    source: Source
    blocks: dict[str, Block]
    """Blocks of points, by array."""

    def line(self) -> bytes:
        """The line of the journal."""
        text = msgspec.json.encode(self)
        return f"{checksum(text)} ".encode() + text + b"\n"

    @classmethod
    def of(cls, line: bytes) -> Self | None:
        """The shape of a line; None if the line is damaged."""
        digest, _, text = line.rstrip(b"\n").partition(b" ")
        return msgspec.json.decode(text, type=cls) if checksum(text).encode() == digest else None


class Journal:
    """The files in a folder that the caller has locked.

    Args:
        folder: folder of the files, which need not exist yet.
        arrays: names of the arrays of a shape.
    """

    def __init__(self, folder: Path, arrays: Sequence[str]) -> None:
        self._folder, self._arrays = folder, tuple(arrays)

    def add(self, row: int, source: Source, arrays: Mapping[str, NDArray[np.float32]]) -> Finished:
        """Append the arrays [n, width] of one shape."""
        blocks = {name: self._append_block(name, arrays[name].astype("<f4")) for name in self._arrays}
        shape = Finished(row, source, blocks)
        _append(self._folder / LINES, shape.line())
        return shape

    def read(self) -> Iterator[Finished]:
        """The undamaged shapes, in the order in which they were finished."""
        path = self._folder / LINES
        if not path.exists():
            return
        with path.open("rb") as lines, ExitStack() as opened:
            files = {name: opened.enter_context(self._path(name).open("a+b")) for name in self._arrays}
            last = b"\n"
            for last in lines:
                if (shape := Finished.of(last)) and _is_whole(shape, files):
                    yield shape
        if not last.endswith(b"\n"):  # left by a killed run: the next line must start on its own
            _append(path, b"\n")

    def blocks(self, name: str, shapes: Iterable[Finished]) -> Iterator[bytes]:
        """The bytes of an array for some shapes, in order; a PointsetError if one is damaged."""
        with self._path(name).open("rb") as file:
            for shape in shapes:
                yield shape.blocks[name].read(file)

    def _append_block(self, name: str, array: NDArray[np.float32]) -> Block:
        content, (rows, width) = array.tobytes(), array.shape
        return Block(_append(self._path(name), content), rows, width, checksum(content))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.f32"


def _is_whole(shape: Finished, files: Mapping[str, BinaryIO]) -> bool:
    try:
        for name, file in files.items():
            shape.blocks[name].read(file)
    except (PointsetError, OSError):
        return False
    return True


def _append(path: Path, content: bytes) -> int:
    """Append to a file, and return the offset."""
    with path.open("ab") as file:
        start = file.tell()
        file.write(content)
    return start


def checksum(block: bytes) -> str:
    """BLAKE2b digest, 32 hexadecimal digits."""
    return hashlib.blake2b(block, digest_size=16).hexdigest()
