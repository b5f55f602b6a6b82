"""The page of the command line: what `pointset COMMAND --help` prints, by the program itself."""

from collections.abc import Iterator
from io import StringIO

from cyclopts import App
from rich.console import Console

from pointset.commands.app import app

WIDTH = 88
"""Characters that the page shows without scrolling."""


def subcommands(parser: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Words that lead to every command, the program itself first."""
    yield path
    for name in parser:
        if not name.startswith("-"):
            yield from subcommands(parser[name], (*path, name))


def printed_help(path: tuple[str, ...]) -> str:
    """What --help prints behind these words."""
    out = StringIO()
    app.help_print(list(path), console=Console(file=out, width=WIDTH, no_color=True, highlight=False))
    return "\n".join(line.rstrip() for line in out.getvalue().strip("\n").splitlines())


def help_page() -> str:
    """The page in Markdown."""
    parts = ["# Command line", "What `pointset --help` and `--help` behind each command print."]
    for path in subcommands(app):
        parts += [f"## {' '.join(('pointset', *path))}", f"```text\n{printed_help(path)}\n```"]
    return "\n\n".join(parts) + "\n"
