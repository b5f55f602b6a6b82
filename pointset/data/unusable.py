"""Shapes that cannot be used: all are tried, and refused together or left out together."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, get_args

from pointset.errors import PointsetError, quoted

OnError = Literal["raise", "skip"]
NAMED = 3
"""Shapes that a message names, where a file lists them all."""
MOST_NAMED = 10
"""Shapes that a message names, where there is no such file."""
MOST_SAID = 400
"""Characters of a warning about shapes that are left out."""
LEAVE_OUT = 'leave them out with --on-error skip (in Python on_error="skip")'


class UnreadableShapesError(PointsetError, ValueError):
    """Some shapes of a dataset cannot be used; all were tried.

    Attributes:
        failures: the reason for each, by the shape's name.
        reports: the files that list them.
        finished: number of shapes that could be used.
        remedy: advice, which ends the message.
    """

    def __init__(
        self, failures: Mapping[str, str], finished: int, reports: Sequence[Path], remedy: str, what: str = "files"
    ) -> None:
        self.failures, self.finished, self.reports, self.remedy = dict(failures), finished, list(reports), remedy
        most = NAMED if reports else MOST_NAMED
        named = "; ".join(list(failures.values())[:most])
        more = f"; and {len(failures) - most} more" if len(failures) > most else ""
        listed = f"; all in {', '.join(map(str, reports))}" if reports else ""
        total = finished + len(failures)
        super().__init__(f"{len(failures)} of {total} {what} cannot be used ({named}{more}{listed}): {remedy}")


def check_on_error(on_error: str) -> None:
    """Raise a PointsetError for anything but "raise" and "skip"."""
    if on_error not in get_args(OnError):
        raise PointsetError(f"on_error must be raise or skip, got {quoted(on_error)}")


def refuse_or_leave_out(failures: Mapping[str, str], finished: int, on_error: str, what: str, remedy: str) -> None:
    """Raise for shapes that cannot be used, unless they may be left out and others remain.

    Args:
        failures: the reason for each, by name.
        finished: number of shapes that can be used.
        on_error: "raise" or "skip".
        what: the word for several of the shapes.
        remedy: how to repair them.

    Raises:
        UnreadableShapesError: there are failures, and they may not be left out.
    """
    check_on_error(on_error)
    if failures and (on_error == "raise" or not finished):
        advice = f"{remedy}, or {LEAVE_OUT}" if finished else remedy
        raise UnreadableShapesError(failures, finished, [], advice, what)
