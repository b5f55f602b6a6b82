"""Memory that a training frees and asks for again at every step.

glibc hands blocks of more than some MB back to the system as soon as they are free, so that every step touches new
pages, which the kernel has to find and to clear first.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
"""The numbers of mallopt's options (mallopt(3))."""
KEPT = {MMAP_THRESHOLD: 2**30, TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 2**26}
USUAL = {MMAP_THRESHOLD: 2**25, TRIM_THRESHOLD: 2**26, TOP_PAD: 2**17}
"""Where glibc's own rule ends up in a process that frees large blocks; it cannot be switched on again."""


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep what is freed inside this block for the next step; hand it back at the end. Nothing without glibc."""
    library = ctypes.CDLL(None) if sys.platform == "linux" else None
    if library is None or not hasattr(library, "gnu_get_libc_version"):
        yield
        return
    _set(library, KEPT)
    try:
        yield
    finally:
        _set(library, USUAL)
        library.malloc_trim(0)


def _set(library: ctypes.CDLL, options: dict[int, int]) -> None:
    for option, value in options.items():
        library.mallopt(option, value)
