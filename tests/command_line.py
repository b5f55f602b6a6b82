"""Runs the command line in this process: its output, and the single line for a mistake."""

import pytest

from pointset.cli import main


def succeed(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """What a command prints."""
    main([str(argument) for argument in arguments])
    return capsys.readouterr().out


def fail(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line by which a command refuses; it prints nothing else."""
    printed, said = fail_late(capsys, *arguments)
    assert printed == ""
    return said


def fail_late(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[str, str]:
    """What a command has printed before it fails, and the one line that says why."""
    with pytest.raises(SystemExit) as left:
        main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    assert left.value.code == 2
    assert captured.err.startswith("pointset: ")
    assert captured.err.count("\n") == 1, "one line"
    assert "Traceback" not in captured.err
    return captured.out, captured.err
