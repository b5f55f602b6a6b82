"""Encoders, poolings, whole models and users' weights functions by name, each registered where it is defined.

A name may have an argument: a number in `isab<m>`, an optional number (default 1) in `pma[<k>]`, a word in
`aggr.<name>`. Poolings may be joined by `+`, as in `max+pma`. What a part can do is said by its class (`parts`).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from torch import nn

from pointset.configuration import USER_WEIGHTS
from pointset.errors import PointsetError
from pointset.nn.parts import HeadName, Statistic

Kind = Literal["encoder", "pooling", "model", "baseline", "weights"]
T = TypeVar("T", bound=Callable[..., Any])

LARGEST_NUMBER = 4096
"""Upper limit for the number in a name: inducing points, seeds, ..."""
JOIN = "<one>+<other>"
"""Name of the part that joins poolings."""


@dataclass(frozen=True)
class Entry:
    """A registered encoder, pooling, whole model or weights function."""

    kind: Kind
    name: str
    """Name of the part, with its argument if it has one: `isab<m>`."""
    make: Any
    """The class, of `parts`; for kind "weights" the function, or the class of a module; for "baseline" a function."""
    listed: str = ""
    """Its name in `list_models`, such as `isab16`; default: the name without the optional argument."""
    export: bool = False
    """Of a weights function: whether it can be exported. Other parts say so themselves."""
    source: str = ""
    """The source code of a user-defined part."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "listed", self.listed or re.sub(r"\[.*\]", "", self.name))

    @property
    def user_defined(self) -> bool:
        """True if the part is not from this package."""
        made_by = getattr(self.make, "func", self.make)  # of a partial
        return not (made_by.__module__ or "").startswith("pointset.")

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches its names; the argument is a group."""
        text = re.escape(self.name).replace(r"\[", "(?:").replace(r"\]", ")?")
        allowed = {"name": r"\w+"}
        return re.compile(re.sub(r"<(\w+)>", lambda it: f"(?P{it[0]}{allowed.get(it[1], '[1-9][0-9]*')})", text), re.A)


@dataclass(frozen=True)
class Choice:
    """A part together with the argument in its name, or joined poolings."""

    entry: Entry
    argument: tuple[int | str, ...] = ()
    joined: "tuple[Choice, ...]" = ()
    """The poolings that `+` joins in its name."""

    @property
    def members(self) -> "tuple[Choice, ...]":
        """The joined poolings, or itself if it is a single part."""
        return self.joined or (self,)

    @property
    def statistic(self) -> Statistic:
        """Of a pooling; see `parts.Pooling`."""
        return self.members[0].entry.make.statistic

    @property
    def head(self) -> HeadName:
        """Of a pooling; see `parts.Pooling`."""
        return "linear" if all(member.entry.make.head == "linear" for member in self.members) else "hidden"

    @property
    def any_width(self) -> bool:
        """Of a pooling; see `parts.Pooling`."""
        return all(member.entry.make.any_width for member in self.members)

    @property
    def has_maps(self) -> bool:
        """True if it has attention maps; a baseline, which a function makes, has none."""
        return any(getattr(member.entry.make, "maps", None) for member in self.members)

    def make(self, *given: Any) -> Any:
        """Build it; the values are those of `make` in `parts`.

        Raises:
            PointsetError: a user-defined part cannot be made of them.
        """
        if self.joined:
            return self.entry.make([member.make(*given) for member in self.joined])
        try:
            return self.entry.make.make(*given, *self.argument)
        except TypeError as error:
            if not self.entry.user_defined:
                raise
            raise PointsetError(
                f"{self.entry.kind} {self.entry.name!r} cannot be built ({error}): give its class a `make` that calls "
                "the constructor"
            ) from error


REGISTERED: dict[tuple[Kind, str], Entry] = {}


def register(kind: Kind, name: str, listed: str = "") -> Callable[[T], T]:
    """Register the decorated class as a part."""
    return lambda make: enter(Entry(kind, name, make, listed))


def enter(entry: Entry) -> Any:
    """Add a part to the registry, and return what makes it."""
    REGISTERED[entry.kind, entry.name] = entry
    if entry.kind == "weights":
        USER_WEIGHTS.add(entry.name)
    return entry.make


def entries(kind: Kind) -> list[Entry]:
    """All parts of a kind, in the order of their names."""
    return sorted((entry for entry in REGISTERED.values() if entry.kind == kind), key=lambda entry: entry.name)


def entry_of(module: nn.Module) -> Entry | None:
    """The entry of a module's class, if it is registered."""
    return next((entry for entry in REGISTERED.values() if entry.make is type(module)), None)


def find_part(kind: Kind, name: str) -> Choice | None:
    """The part with this name, or None; poolings joined by `+` are one part.

    Raises:
        PointsetError: the number in the name is above `LARGEST_NUMBER`.
    """
    if kind == "pooling" and "+" in name:
        joined = tuple(choice for word in name.split("+") if (choice := find_part("pooling", word)))
        return Choice(REGISTERED["pooling", JOIN], (), joined) if len(joined) > name.count("+") else None
    for entry in entries(kind):
        if match := entry.pattern.fullmatch(name):
            groups = match.groupdict(default="1")
            argument = tuple(value if key == "name" else int(value) for key, value in groups.items())
            if any(isinstance(value, int) and value > LARGEST_NUMBER for value in argument):
                raise PointsetError(f"the number in {name} must be at most {LARGEST_NUMBER}")
            return Choice(entry, argument)
    return None
