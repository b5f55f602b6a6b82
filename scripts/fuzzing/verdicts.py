"""What became of one mutated file, and whether an error is one that a user can read."""

from dataclasses import dataclass, field
from pathlib import Path

from pointset.errors import PointsetError

GOOD = ("alike", "refused")
BAD = ("differs", "illegal", "strict", "crashed", "slow", "large")
MEANING = {
    "alike": "read by both, the same arrays",
    "refused": "refused by both",
    "differs": "read by both, other arrays",
    "illegal": "read, although the rules refuse it",
    "strict": "refused, although the rules allow it",
    "crashed": "another exception than PointsetError, a bad message, a warning, or the end of the process",
    "slow": "longer than the time limit",
    "large": "more memory than the limit",
}

LONGEST_EXCERPT = 200
LONGEST_MESSAGE = 600


@dataclass(frozen=True)
class Outcome:
    """One file's verdict, a key of `MEANING`; what was found, in a line; and the file, to be shown."""

    verdict: str
    detail: str = ""
    content: bytes = field(default=b"", repr=False)


def of_error(error: Exception, path: Path, content: bytes) -> Outcome:
    """Refused, if the error is a PointsetError with a message for users; else crashed or large."""
    if not isinstance(error, PointsetError):
        verdict = "large" if isinstance(error, MemoryError) else "crashed"
        return Outcome(verdict, f"{type(error).__name__}: {str(error)[:300]!r}")
    if ran_out_of_memory(error):
        return Outcome("large", f"memory was asked for before it refused: {error!s:.300}")
    fault = message_fault(str(error), path, content)
    return Outcome("crashed", f"{fault}: {str(error)[:300]!r}") if fault else Outcome("refused", str(error))


def ran_out_of_memory(error: BaseException | None) -> bool:
    """Whether a MemoryError is among the reasons of an error."""
    while error is not None:
        if isinstance(error, MemoryError) or "MemoryError" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def message_fault(message: str, path: Path, content: bytes) -> str:
    """What is wrong with a message about a file; nothing if it is a sentence that names it."""
    if str(path) not in message:
        return "the message does not name the file"
    if not message.isprintable():
        return "the message has several lines or control characters"
    rest = message.replace(str(path), "")
    if len(rest) > LONGEST_MESSAGE:
        return f"the message has {len(rest)} characters beside the file's name"
    data = rest.encode("utf-8", "replace")
    pieces = (data[i : i + LONGEST_EXCERPT + 1] for i in range(len(data) - LONGEST_EXCERPT))
    if any(piece in content for piece in pieces):
        return f"the message repeats more than {LONGEST_EXCERPT} characters of the file"
    return ""
