"""Damages files as a bad disk or a cut connection would."""

import os
from pathlib import Path

import numpy as np


def damaged(content: bytes, seed: int) -> bytes:
    """Truncate the content, or change one to three of its bytes, at random from a seed."""
    random = np.random.default_rng(seed)
    changes = int(random.integers(0, 4))
    if not changes:
        return content[: random.integers(0, len(content))]
    changed = bytearray(content)
    for place in random.integers(0, len(content), changes):
        changed[place] = random.integers(0, 256)
    return bytes(changed)


def flipped(content: bytes, random: np.random.Generator) -> bytes:
    """The content with one of its bits flipped."""
    changed = bytearray(content)
    changed[random.integers(len(content))] ^= 1 << int(random.integers(8))
    return bytes(changed)


def flip(path: Path, place: int) -> None:
    """Flip a bit of the byte at a place in a file, whose size and time stay."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
