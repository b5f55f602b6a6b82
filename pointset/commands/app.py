"""The parser of the command line."""

from collections.abc import Sequence

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

import pointset
from pointset.commands import (
    attend,
    comparing,
    data,
    evaluate,
    export,
    judge,
    predict,
    segment,
    serve,
    similar,
    train,
    zoo,
)
from pointset.commands.options import Flags, flags_in, in_words
from pointset.commands.terminal import escaping, warning_in_one_line
from pointset.errors import REPEATED, PointsetError, one_line, quoted

app = App(
    name="pointset",
    help="Train, compare and inspect set networks for 3D shapes. `pointset compare` is a good first command.",
    help_epilogue="Add --debug to any command to see the traceback of an error.",
    version=pointset.__version__,
    version_flags=["--version"],
    group_parameters=Flags,
    help_format="plaintext",  # markdown, as the commands have it, takes a fifth longer to start
    default_parameter=Parameter(negative=(), consume_multiple=True, show_default=in_words),
)
app.command(data.app)
for command in (
    zoo.zoo,
    train.train,
    evaluate.evaluate,
    comparing.compare,
    comparing.task,
    train.tune,
    attend.attend,
    predict.classify,
    predict.predict,
    segment.segment,
    similar.embed,
    similar.find,
    serve.serve,
    export.export,
    export.pack,
    export.push,
    judge.judge,
    judge.audit,
):
    app.command(command, help_format="markdown")


LONGEST = 4096
"""Characters of a word of the command line: the longest path that there is."""


def run(tokens: Sequence[str]) -> None:
    """Run the command of a command line.

    Raises:
        PointsetError: the command line is wrong, or the command says so.
    """
    if too_long := next((token for token in tokens if len(token) > LONGEST), None):
        raise PointsetError(f"{quoted(too_long)} has {len(too_long):,} characters: give a value of at most {LONGEST:,}")
    try:
        command, bound, unparsed = app.parse_args(tokens, exit_on_error=False, print_error=False)
        if "given" in unparsed:
            bound.arguments["given"] = flags_in(tokens)
    except UnusedCliTokensError as error:
        stranger = quoted((error.unused_tokens or [""])[0])
        raise PointsetError(f"{stranger} is one argument too many: leave it out, or see --help") from error
    except CycloptsError as error:
        raise PointsetError(one_line(error, 2 * REPEATED)) from error
    if command.__module__.startswith("pointset."):
        with escaping(), warning_in_one_line():
            command(*bound.args, **bound.kwargs)
    else:
        command(*bound.args, **bound.kwargs)  # the parser's help, which may have colours
