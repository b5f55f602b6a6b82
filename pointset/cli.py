"""The command line: a thin face over the library. Nothing heavy is imported until a command needs it."""

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter

from pointset.commands import attend, classify, comparing, data, export, tasks, training
from pointset.errors import PointsetError

app = App(
    name="pointset",
    help="Train, compare and look into set networks for 3D shapes. `pointset compare` is a good first command.",
    help_epilogue="Add --debug to any command to see the traceback of an error.",
    version_flags=["--version"],
    help_format="plaintext",  # markdown, as the commands have it, takes a fifth longer to start
    default_parameter=Parameter(negative=(), consume_multiple=True),
)
app.command(data.app)
for command in (
    training.zoo,
    training.train,
    training.evaluate,
    comparing.compare,
    tasks.task,
    attend.attend,
    classify.classify,
    export.export,
):
    app.command(command, help_format="markdown")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; leave with 0 for success, 2 for what the user can put right, 1 for our own mistakes."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    try:
        app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; the shell's code for it. Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)
    except (PointsetError, CycloptsError, OSError) as error:
        if debug:
            raise
        print(f"pointset: {_one_line(error)}", file=sys.stderr)
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
            f"pointset: unexpected {type(error).__name__}: {_one_line(error)} (--debug shows more)",
            file=sys.stderr,
        )
        sys.exit(1)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    main()
