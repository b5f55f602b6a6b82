"""The parser of the command line."""

from collections.abc import Sequence
from inspect import signature

from cyclopts import App, CoercionError, CycloptsError, Parameter, UnusedCliTokensError

import pointset
from pointset.commands import attend, comparing, data, embed, evaluate, export, predict, rank, train, zoo
from pointset.commands.flags import Flags, flags_in, in_words
from pointset.commands.terminal import Result, warning_in_one_line
from pointset.configuration import allowed
from pointset.errors import REPEATED, PointsetError, one_line, quoted

COMMANDS = (
    zoo.zoo,
    evaluate.evaluate,
    attend.attend,
    predict.classify,
    embed.embed,
    export.export,
    rank.rank,
)
LONG = (train.train, comparing.compare)
"""Commands with many options: `--help` shows only the options that are annotated with COMMON."""
MODELS = ("model", "models")
EVERYWHERE = "Add --json to print JSON, --debug to see the traceback of an error"


def make_app(show_all: bool = False) -> App:
    """Return the parser. Its help shows all options, or only the common ones."""
    app = App(
        name="pointset",
        help="Train, compare and inspect set networks for 3D shapes. `pointset compare` is a good first command.",
        help_epilogue=f"{EVERYWHERE}.",
        help_flags=["--help", "-h", "--help-all"],
        version=pointset.__version__,
        version_flags=["--version"],
        group_parameters=Flags,
        help_format="plaintext",  # markdown, which commands use, makes the start a fifth slower
        default_parameter=Parameter(negative=(), consume_multiple=True, show_default=in_words),
    )
    app.command(data.app)
    for command in COMMANDS:
        app.command(command, help_format="markdown")
    hidden = None if show_all else Parameter(show=False)
    epilogue = None if show_all else f"{EVERYWHERE}, --help-all to see all other options."
    for many in LONG:
        app.command(many, help_format="markdown", default_parameter=hidden, help_epilogue=epilogue)
    return app


def run(tokens: Sequence[str]) -> None:
    """Parse a command line, and run its command.

    Raises:
        PointsetError: the command line is wrong, or the command fails.
    """
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token == "" or (token.startswith("--") and token.endswith("=")):
            name = token.rstrip("=") or (f"the value of {before}" if before.startswith("-") else "an argument")
            raise PointsetError(f"{name} is empty: give a value, or leave it out")
    as_json = "--json" in tokens
    tokens = [token for token in tokens if token != "--json"]
    app = make_app(show_all="--help-all" in tokens)
    try:
        command, bound, unparsed = app.parse_args(tokens, exit_on_error=False, print_error=False)
        if "given" in unparsed:
            bound.arguments["given"] = flags_in(tokens)
    except CycloptsError as error:
        raise PointsetError(_in_a_sentence(error)) from error
    if not command.__module__.startswith("pointset."):
        command(*bound.args, **bound.kwargs)  # the parser's help, which may have colours
        return
    with warning_in_one_line():
        result = command(*bound.args, **bound.kwargs)
        if isinstance(result, Result):
            result.show(as_json)


def _in_a_sentence(error: CycloptsError) -> str:
    """Return an error of the parser as one sentence."""
    command, error.verbose = " ".join(("pointset", *(error.command_chain or ()))), False
    message = one_line(error, 2 * REPEATED).partition(" Available commands:")[0].removesuffix(".")
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        parameters = signature(error.target).parameters.values() if error.target else ()
        flags = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY and each.name in MODELS]
        remedy = "".join(f"; give a model with --{name}" for name in flags)
        message = f"{quoted(error.unused_tokens[0])} is one argument too many{remedy}"
    if isinstance(error, CoercionError) and error.argument is not None and error.token is not None:
        wanted = allowed(error.argument.field_info.annotation)
        message = f"{error.argument.name} must be {wanted}, got {quoted(error.token.value)}"
    return f"{message} (see `{command} --help-all`)"
