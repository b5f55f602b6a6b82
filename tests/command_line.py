"""Runs the command line in this process: its output, and the single line for a mistake."""

import json
from typing import Any

import pytest

from pointset.cli import main


def succeed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run a command that must succeed, and return what it prints."""
    main([str(argument) for argument in arguments])
    return capsys.readouterr().out


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
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.err.startswith("pointset: ")
    assert captured.err.count("\n") == 1, "one line"
    assert "Traceback" not in captured.err
    return captured.out, captured.err
