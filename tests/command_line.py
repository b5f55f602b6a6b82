"""Runs the command line in this process: its output, and the single line for a mistake.

Every option that a command advises must be one of its own, or of a command that the sentence names.
"""

import functools
import json
import re
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from pointset.cli import main
from pointset.commands.app import make_app

HELP = {"-h", "--help", "--help-all"}  # whose sentences are broken into lines
EVERYWHERE = HELP | {"--version", "--json", "--debug"}
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


@functools.cache
def options_of_commands() -> dict[str, frozenset[str]]:
    """The options of each command, such as "train" or "data show"."""
    app = make_app(show_all=True)
    commands = {name: app[name] for name in app if not name.startswith("-") and name != "data"}
    commands |= {f"data {name}": app["data"][name] for name in app["data"] if not name.startswith("-")}
    return {
        name: frozenset(option for argument in command.assemble_argument_collection() for option in argument.names)
        for name, command in commands.items()
    }


def advised_in_vain(text: str, command: str = "") -> list[str]:
    """The sentences of a text with an option that neither the command has nor one that the sentence names.

    Without a command, options of any are right.
    """
    commands = options_of_commands()
    own, wrong = (commands[command] if command in commands else frozenset().union(*commands.values())) | EVERYWHERE, []
    for sentence in re.split(r"[\n;]", text):
        named = (options for name, options in commands.items() if re.search(rf"\b{name}\b", sentence))
        if not {*OPTION.findall(sentence)} <= own.union(*named):
            wrong.append(sentence)
    return wrong


def _require_possible(arguments: Sequence[str], text: str) -> None:
    command = " ".join(arguments[: 1 + (arguments[:1] == ["data"])])
    # Those of the tests stand in what a comparison says of itself.
    given = {word.partition("=")[0] for word in (*arguments, *sys.argv[1:]) if word.startswith("--")}
    for word in given - options_of_commands().get(command, frozenset()):  # a mistake of the user, which is named
        text = re.sub(rf"{word}(?![\w-])", "", text)
    if command in options_of_commands():
        assert advised_in_vain(text, command) == []


def succeed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must succeed, and return what it prints."""
    words = [str(argument) for argument in arguments]
    main(words)
    captured = capsys.readouterr()
    if not HELP & {*words}:
        _require_possible(words, captured.out + captured.err)
    return captured.out


def asked(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    """What a command that must succeed says as JSON."""
    return json.loads(succeed(capsys, *arguments, "--json"))


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must fail with code 2, and return its one-line message; it must print nothing else."""
    printed, said = fail_late(capsys, *arguments)
    assert printed == ""
    return said


def fail_late(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    """Run a command that must fail, and return what it printed before, and its one-line message."""
    words = [str(argument) for argument in arguments]
    with pytest.raises(SystemExit) as left:
        main(words)
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.err.startswith("pointset: ")
    assert captured.err.count("\n") == 1, "one line"
    assert "Traceback" not in captured.err
    _require_possible(words, captured.out + captured.err)
    return captured.out, captured.err
