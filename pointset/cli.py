"""The command line: a thin face over the library. Nothing heavy is imported until a command needs it."""

import os
import sys
from collections.abc import Sequence

from pointset.commands.app import run
from pointset.errors import REPEATED, PointsetError, one_line

LONGEST = 5000
"""Characters of a message: the longest path that there is, and a sentence."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; leave with 0 for success, 2 for what the user can put right, 1 for our own mistakes."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    try:
        run(tokens)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; the shell's code for it. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (PointsetError, OSError) as error:
        if debug:
            raise
        print(f"pointset: {one_line(error, LONGEST)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        goes_on = tokens[:1] in (["train"], ["compare"], ["task"]) or tokens[:2] in (
            ["data", "build"],
            ["data", "fetch"],
        )
        hint = "; the same command goes on where it stopped" if goes_on else ""
        print(f"pointset: interrupted{hint}", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if debug:
            raise
        print(
            f"pointset: unexpected {type(error).__name__}: {one_line(error, REPEATED)} (--debug shows more)",
            file=sys.stderr,
        )
        sys.exit(1)


if __name__ == "__main__":
    main()
