"""The one family of errors that is meant for the user's eyes, and how its messages show what somebody else wrote."""

import re
import reprlib
import sysconfig
import traceback
from pathlib import Path, PurePath
from typing import Any

NOT_OWN = (str(Path(__file__).parent), sysconfig.get_path("stdlib"), "site-packages", "dist-packages", "<frozen")
"""Parts of the paths of code that is not the user's."""
QUOTED = 80
"""Characters of a value in a message."""
REPEATED = 200
"""Most characters of a file, or of another library's words, in a message."""


class PointsetError(Exception):
    """Something the user can put right.

    The message is one sentence that says what is wrong, where, and what to do about it. The command line prints
    it without a traceback and exits with code 2.

    Example:
        >>> pointset.create_model("isab16-pam")
        Traceback (most recent call last):
        pointset.errors.PointsetError: ...
    """


def quoted(value: object, most: int = QUOTED) -> str:
    """A value as a message shows it: its repr, escaped, and cut to about `most` characters, at most 200.

    Neither a huge value, a deeply nested one, nor one without a repr can make the message fail; a long text or number
    is cut in its middle. A path is not cut.
    """
    if isinstance(value, PurePath):
        return escaped(repr(str(value)))
    most = min(most, REPEATED)
    return one_line(_Short(most).repr(value), most + len("''"))


def one_line(text: object, most: int | None = None) -> str:
    """Somebody else's words on one line, escaped: of a library's error, say `one_line(error, REPEATED)`.

    Args:
        text: words, or an error.
        most: characters to keep.
    """
    line = escaped(" ".join(str(text).split()))
    return line if most is None or len(line) <= most else line[: most - 3] + "..."


def escaped(text: str) -> str:
    r"""Text with all that a terminal might obey, or cannot show, as Python writes it: ESC becomes \x1b."""
    return text if text.isprintable() else re.sub(r"[^ -~]", _escape, text)


def place_in_own_code(error: BaseException) -> str:
    """Where in the user's own code an error was raised, as " (mine.py, line 31)"; empty if nowhere in it."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(part in frame.filename for part in NOT_OWN)]
    return f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""


def _escape(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else repr(found[0])[1:-1]


class _Short(reprlib.Repr):
    """Python's own way of showing no more than the beginning of a value, whatever its size."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.maxstring = self.maxother = self.maxlong = most
        self.maxtuple = self.maxlist = self.maxarray = self.maxset = self.maxfrozenset = self.maxdict = most // 3
        self.maxlevel = 4

    def repr_int(self, x: int, level: int) -> str:
        """As any repr, but for a number that Python refuses to write out."""
        try:
            return super().repr_int(x, level)
        except ValueError:
            return f"a number of about {x.bit_length() * 30103 // 100000 + 1:,} digits"

    def repr_bytes(self, x: Any, level: int) -> str:
        """Like text: the beginning is enough."""
        return repr(x if len(x) <= self.maxstring else x[: self.maxstring]) + "..." * (len(x) > self.maxstring)

    def repr_instance(self, x: Any, level: int) -> str:
        """An object whose repr fails is named by its type; that of an array has several lines."""
        return " ".join(super().repr_instance(x, level).split())
