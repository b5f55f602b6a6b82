"""Shapes that cannot be used: report all of them in one error, or leave all of them out."""

import re
from collections.abc import Mapping
from typing import Any, Literal

from pointset.configuration import check
from pointset.errors import PointsetError, counted

OnError = Literal["raise", "skip"]
_FOREIGN = re.compile(r"'[^']*'|\"[^\"]*\"|[-+]?\d[\d.,]*(e[-+]?\d+)?")
MOST_SAID = 400
"""Maximum number of characters of the reasons in a warning about shapes that are left out."""
LEAVE_OUT = 'leave them out with --on-error skip (in Python on_error="skip")'


def in_kinds(reasons: Mapping[str, str]) -> str:
    """Join reasons (by shape name) into one text. Reasons that differ only in names, numbers and quotes are one kind.

    Up to ten kinds are listed, each with its first reason, the number of further shapes and the names of three.
    """
    kinds: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        kinds.setdefault(_FOREIGN.sub("#", reason.rpartition(name)[2]), []).append(name)
    texts = []
    for first, *others in kinds.values():
        names = ", ".join(others[:3]) + ", ..." * (len(others) > 3)
        texts.append(reasons[first] + f" (and {len(others):,} more like it: {names})" * bool(others))
    return "; ".join(texts[:10] + [f"and {len(texts) - 10} more kinds"] * (len(texts) > 10))


class UnreadableShapesError(PointsetError, ValueError):
    """Error about all shapes of a dataset that cannot be used.

    Attributes:
        failures: the reason for each of these shapes, by the shape's name.
        finished: number of usable shapes.
    """

    def __init__(self, failures: Mapping[str, str], finished: int, remedy: str, what: str = "files") -> None:
        self.failures, self.finished, self.remedy, self.what = dict(failures), finished, remedy, what
        total = finished + len(failures)
        first = f"{len(failures)} of {counted(total, what.removesuffix('s'))}"
        super().__init__(f"{first} cannot be used ({in_kinds(failures)}): {remedy}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arguments rather than the message, so that worker processes can pass the error on."""
        return type(self), (self.failures, self.finished, self.remedy, self.what)


def refuse_or_leave_out(failures: Mapping[str, str], finished: int, on_error: str, what: str, remedy: str) -> None:
    """Raise an UnreadableShapesError if there are failures, unless `on_error` is "skip" and usable shapes remain.

    `failures` has reasons by shape name. The message contains `what`, a plural noun for the shapes, and the `remedy`.
    """
    check("on_error", on_error, OnError)
    if failures and (on_error == "raise" or not finished):
        advice = f"{remedy}, or {LEAVE_OUT}" if finished else remedy
        raise UnreadableShapesError(failures, finished, advice, what)
