"""Base class of errors that users can correct, and functions that quote values and texts in messages."""

import re
import reprlib
import sys
import sysconfig
import traceback
import warnings
from importlib.util import find_spec
from pathlib import Path, PurePath
from typing import Any

NOT_OWN = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), "site-packages", "dist-packages", "<frozen")
"""Parts of the paths of files that are not the user's code."""
QUOTED = 80
"""Default maximum number of characters of a value in a message."""
REPEATED = 200
"""Maximum number of characters of a file's content, or of another library's error, in a message."""

MARKUP = re.compile(r"[\\`*_\[\]<>|#&~$]")
INSIDE = re.compile(r"(?<=\w)\\_(?=\w)")


class PointsetError(Exception):
    """An error that the user can correct.

    The message is one sentence: what is wrong, where, and how to correct it. The command line prints it without a
    traceback and exits with code 2.
    """


def quoted(value: object, most: int = QUOTED) -> str:
    """Return the escaped repr of a value for a message, shortened to about `most` characters (200 or fewer).

    Paths are not shortened.
    """
    if isinstance(value, PurePath):
        return escaped(repr(str(value)))
    most = min(most, REPEATED)
    return one_line(_Short(most).repr(value), most + len("''"))


def counted(number: int, what: str) -> str:
    """Return a number with its noun, such as 1,024 points or 2 classes."""
    return f"{number:,} {what}{'' if number == 1 else 'es' if what.endswith('s') else 's'}"


def described(value: Any) -> str:
    """Describe a tensor or an array as "float32 [2, 5, 3]", and other values by their type."""
    shape, kind = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or kind is None:
        return "None" if value is None else type(value).__name__
    return f"{str(kind).removeprefix('torch.')} {list(shape)}"


def one_line(text: object, most: int | None = None) -> str:
    """Escape text, such as the error of a library, and put it on one line: `one_line(error, REPEATED)`.

    Args:
        text: text, or an error.
        most: maximum number of characters, or None to keep all.
    """
    line = escaped(" ".join(str(text).split()))
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def escaped(text: str) -> str:
    r"""Escape characters that are not printable, as repr does: ESC becomes \x1b."""
    return text if text.isprintable() else re.sub(r"[^ -~]", _escape, text)


def in_markdown(text: str) -> str:
    """Escape text so that Markdown shows it unchanged, on one line."""
    return INSIDE.sub("_", MARKUP.sub(r"\\\g<0>", escaped(text)))  # underscores inside words need no escape


def require_extra(extra: str, purpose: str, *modules: str) -> None:
    """Raise a PointsetError with the command that installs the package's `extra`, unless its modules are installed."""
    if missing := [name for name in modules if find_spec(name) is None]:
        raise PointsetError(f"{purpose} needs {' and '.join(missing)}: pip install 'pointset-learn[{extra}]'")


def place_in_own_code(error: BaseException) -> str:
    """Return the user's innermost line in a traceback, as " (mine.py, line 31)", or "" if there is none."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in NOT_OWN)]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def warn_caller(text: str) -> None:
    """Issue a warning at the line of the user's code that called this package."""
    frames = enumerate(traceback.walk_stack(sys._getframe(1)), 2)
    level = next((level for level, (frame, _) in frames if NOT_OWN[0] not in frame.f_code.co_filename), 2)
    warnings.warn(text, UserWarning, stacklevel=level)


def _escape(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else repr(found[0])[1:-1]


class _Short(reprlib.Repr):
    """A `reprlib.Repr` with the limits of messages."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = most
        self.maxtuple = self.maxlist = self.maxarray = self.maxset = self.maxfrozenset = self.maxdict = most // 3
        self.maxlevel = 4
