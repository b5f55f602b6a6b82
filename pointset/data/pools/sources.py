"""Detect whether a shape's file has changed since its pool was made: by size and time and, if they differ, by hash."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from pointset.data.readers.trimesh_meshes import files_beside


@dataclass(frozen=True)
class Source:
    """One version of a file."""

    bytes: int
    """Size, including external buffers of a .gltf or .glb file."""
    modified_ns: int
    """Time of the latest modification."""
    blake2b: str | None
    """Digest of the contents; None if they could not be read."""


def describe_source(path: Path) -> Source:
    """The current version of a file; an OSError if it cannot be read."""
    size, modified = _size_and_time(path)
    return Source(size, modified, hash_source(path))


def hash_source(path: Path) -> str:
    """BLAKE2b digest of the contents, 32 hexadecimal digits; an OSError if they cannot be read."""
    digest = hashlib.blake2b(digest_size=16)
    for file in _files(path):
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def recheck(path: Path, source: Source) -> Source | None:
    """Compare a file with an earlier version; its contents are read only if size or time differ.

    Returns:
        The current version: `source` itself, or one with another time; None if the contents have changed.
    """
    try:
        size, modified = _size_and_time(path)
        if (size, modified) == (source.bytes, source.modified_ns):
            return source
        same = hash_source(path) == source.blake2b
        return Source(size, modified, source.blake2b) if same else None
    except OSError:
        return source if source.blake2b is None else None  # unchanged if it could not be read before either


def _size_and_time(path: Path) -> tuple[int, int]:
    facts = [file.stat() for file in _files(path)]
    return sum(fact.st_size for fact in facts), max(fact.st_mtime_ns for fact in facts)


def _files(path: Path) -> list[Path]:
    """The file and, for .gltf and .glb, the external buffers that it names."""
    return [path, *(files_beside(path) if path.suffix.lower() in (".gltf", ".glb") else ())]
