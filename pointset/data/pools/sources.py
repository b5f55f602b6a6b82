"""Whether a shape's file has changed since its pool was made, by size and time, and by hash where those differ."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pointset.data.files.gltf import files_beside


@dataclass(frozen=True)
class Source:
    """One version of a file."""

    bytes: int
    """Its size; with the buffers beside it, if it is a .gltf or .glb file."""
    modified_ns: int
    """The latest modification."""
    blake2b: str | None
    """Of the contents; None if they could not be read."""


def describe_source(path: Path) -> Source:
    """The present version of a file; an OSError if it cannot be read."""
    size, modified = _glance(path)
    return Source(size, modified, hash_source(path))


def hash_source(path: Path) -> str:
    """BLAKE2b of the contents, 32 hexadecimal digits; an OSError if they cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def recheck(path: Path, source: Source) -> Source | None:
    """Compare a file with an earlier version; its contents are read only if size or time differ.

    Returns:
        The present version: `source` itself, or one with another time; None if the contents have changed.
    """
    try:
        size, modified = _glance(path)
        if (size, modified) == (source.bytes, source.modified_ns):
            return source
        same = hash_source(path) == source.blake2b
        return Source(size, modified, source.blake2b) if same else None
    except OSError:
        return source if source.blake2b is None else None  # it could not be read then either


def _glance(path: Path) -> tuple[int, int]:
    facts = [file.stat() for file in _files(path)]
    return sum(fact.st_size for fact in facts), max(fact.st_mtime_ns for fact in facts)


def _files(path: Path) -> list[Path]:
    """The file and, of .gltf and .glb, the buffers that it names."""
    return [path, *(files_beside(path) if path.suffix.lower() in (".gltf", ".glb") else ())]
