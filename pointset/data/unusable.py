"""Shapes that cannot be used: report all of them in one error, or leave all of them out."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pointset.configuration import check
from pointset.errors import PointsetError

OnError = Literal["raise", "skip"]
NAMED = 3
"""Number of shapes named in a message, if a file lists them all."""
MOST_NAMED = 10
"""Number of shapes named in a message, if no file lists them."""
MOST_SAID = 400
"""Most characters of the reasons in a warning about shapes that are left out."""
LEAVE_OUT = 'leave them out with --on-error skip (in Python on_error="skip")'


class UnreadableShapesError(PointsetError, ValueError):
    """Some shapes of a dataset cannot be used; all shapes were checked.

    Attributes:
        failures: the reason for each bad shape, by name.
        finished: number of usable shapes.
        reports: files that list the bad shapes.
    """

    def __init__(
        self, failures: Mapping[str, str], finished: int, reports: Sequence[Path], remedy: str, what: str = "files"
    ) -> None:
        self.failures, self.finished, self.reports = dict(failures), finished, list(reports)
        self.remedy, self.what = remedy, what
        most = NAMED if reports else MOST_NAMED
        named = "; ".join(list(failures.values())[:most])
        more = f"; and {len(failures) - most} more" if len(failures) > most else ""
        listed = f"; all in {', '.join(map(str, reports))}" if reports else ""
        total = finished + len(failures)
        super().__init__(f"{len(failures)} of {total} {what} cannot be used ({named}{more}{listed}): {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments rather than the message, so that worker processes can pass the error on."""
        return type(self), (self.failures, self.finished, self.reports, self.remedy, self.what)


def refuse_or_leave_out(
    failures: Mapping[str, str], finished: int, on_error: str, what: str, remedy: str, reports: Sequence[Path] = ()
) -> None:
    """Raise an UnreadableShapesError for failures (reasons by name), unless they are skipped and other shapes remain.

    The message has `what` (a plural noun), `remedy` (how to repair them) and the reports that list them all.
    """
    check("on_error", on_error, OnError)
    if failures and (on_error == "raise" or not finished):
        advice = f"{remedy}, or {LEAVE_OUT}" if finished else remedy
        raise UnreadableShapesError(failures, finished, reports, advice, what)
