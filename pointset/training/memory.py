"""Memory that a training frees and allocates again at every step.

glibc returns large blocks to the system as soon as they are free, so every step would touch new pages, which the kernel
has to find and clear first.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3
"""The numbers of mallopt's options (mallopt(3))."""
KEPT = {MMAP_THRESHOLD: 2**30, TRIM_THRESHOLD: 2**31 - 1, TOP_PAD: 2**26}
USUAL = {MMAP_THRESHOLD: 2**25, TRIM_THRESHOLD: 2**26, TOP_PAD: 2**17}
"""What glibc's own rule arrives at in a process that frees large blocks; the rule cannot be switched on again."""


@contextmanager
def kept_memory() -> Iterator[None]:
    """Keep freed memory inside this block and return it at the end; without glibc, do nothing."""
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
