"""The command line: a thin face over the library. Nothing heavy is imported until a command needs it."""

import contextlib
import errno
import os
import re
import sys
from collections.abc import Sequence

from pointset.commands.interruptions import Interruptions
from pointset.errors import REPEATED, PointsetError, one_line, quoted

LONGEST = 5000
"""Characters of a message: the longest path that there is, and a sentence."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line.

    It leaves with 0 for success, 2 for what the user can put right, 1 for our own mistakes, 130 after Ctrl-C and 143
    after SIGTERM.
    """
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    interruptions = Interruptions(tokens)
    interruptions.listen()
    try:
        from pointset.commands.app import run  # in here, so that Ctrl-C is heard while it is imported

        run(tokens)
        sys.stdout.flush()
    except BaseException as error:
        if interruptions.received is None and (debug or isinstance(error, SystemExit)):
            raise
        code = _end(error, interruptions)
        if interruptions.received is not None and arguments is None:
            os._exit(code)  # at once: an orderly end can take seconds, and somebody is waiting
        sys.exit(code)
    finally:
        if arguments is not None:  # else nothing comes after this but the end of the process
            interruptions.stop_listening()


def _end(error: BaseException, interruptions: Interruptions) -> int:
    """Say in one line why the command ends; return the exit code."""
    # What is raised after a signal comes of it: libraries turn KeyboardInterrupt into errors of their own.
    if interruptions.received is not None or isinstance(error, KeyboardInterrupt):
        # Nobody may be there to read it, and workers end only when this process does.
        with contextlib.suppress(OSError):
            print(interruptions.message(), end="", file=interruptions.stderr, flush=True)
        return interruptions.code
    if isinstance(error, BrokenPipeError):
        # Whoever read our output has gone, as `head` does; the shell's code for it. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    if isinstance(error, PointsetError | OSError):
        said = _of_the_system(error) if isinstance(error, OSError) and error.strerror else error
        print(f"pointset: {one_line(said, LONGEST)}", file=sys.stderr)
        return 2
    if of_memory(error):
        asked = re.search(r"allocate ([\d.]+ ?(?:bytes|[KMGTPE]i?B))", str(error))
        much = f" ({asked[1]} at once)" if asked else ""
        said = f"not enough memory{much}: use fewer points or shapes at once, or a smaller model"
        print(f"pointset: {said}", file=sys.stderr)
        return 2
    said = one_line(error, REPEATED)
    print(f"pointset: unexpected {type(error).__name__}: {said} (--debug shows more)", file=sys.stderr)
    return 1


def _of_the_system(error: OSError) -> str:
    """What the system refused: a folder that may not be written, a name that is too long."""
    if error.filename is None:
        return str(error)
    name = str(error.filename)
    shown = quoted(name) if error.errno == errno.ENAMETOOLONG else name
    return f"{shown} cannot be used ({error.strerror}): use another path"


def of_memory(error: BaseException) -> bool:
    """Whether no more memory could be had: torch says so by an error of its own, for a GPU by another."""
    words = re.compile("allocate memory|not enough memory|out of memory", re.I)
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and bool(words.search(str(error))))


if __name__ == "__main__":
    main()
