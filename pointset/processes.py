"""What is known about joblib's worker processes and not said by joblib."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def recycled_quietly() -> Iterator[None]:
    """Keep joblib's remark on replaced workers from the user, and its thread alive where warnings are errors.

    A worker that has grown by 300 MB, by importing torch or opening data, is replaced by a fresh one between two tasks.
    joblib speaks of a memory leak then (joblib issue 869), in the thread that starts the fresh one; made an error
    there, the warning ends that thread, and everybody waits for ever.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="A worker stopped while some jobs were given", category=UserWarning)
        yield
