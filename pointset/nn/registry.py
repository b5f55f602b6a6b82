"""Registry of encoders, poolings, whole models and user-defined weights functions, by name.

A name may have an argument: a number in `isab<m>`, an optional number (default 1) in `pma[<k>]`, or a word in
`aggr.<name>`. Poolings may be joined by `+`, as in `max+pma`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from torch import nn

from pointset.errors import PointsetError
from pointset.nn.modules import HeadName, Statistic

Kind = Literal["encoder", "pooling", "model", "baseline", "weights"]
T = TypeVar("T", bound=Callable[..., Any])

LARGEST_NUMBER = 4096
"""Upper limit for the number in a name, such as 16 in `isab16`."""
JOIN = "<one>+<other>"
"""Registered name of joined poolings."""


@dataclass(frozen=True)
class Entry:
    """A registered encoder, pooling, whole model or weights function."""

    kind: Kind
    name: str
    """Name, with a placeholder for an argument, as in `isab<m>`."""
    module: Any
    """Class of modules, a function for kind "baseline", and either of them for kind "weights"."""
    listed: str
    """Name in the output of `list_models`, such as `isab16`."""
    export: bool = False
    """True if a weights function can be exported. Classes of other kinds have an attribute `export`."""
    digest: str = ""
    """Digest of the file that defines a user-defined class or function."""
    copied: bool = False
    """True if the entry was registered in another process and copied to this one."""

    @property
    def user_defined(self) -> bool:
        """True if the class or function is not from this package."""
        definition = getattr(self.module, "func", self.module)  # the function of a partial
        return not (definition.__module__ or "").startswith("pointset.")

    @property
    def pattern(self) -> re.Pattern[str]:
        """Regular expression for the entry's names, with a group for the argument."""
        text = re.escape(self.name).replace(r"\[", "(?:").replace(r"\]", ")?")
        allowed = {"name": r"\w+"}
        return re.compile(re.sub(r"<(\w+)>", lambda it: f"(?P{it[0]}{allowed.get(it[1], '[1-9][0-9]*')})", text), re.A)


@dataclass(frozen=True)
class Builder:
    """A registered class with an argument, such as 16 in `isab16`, or joined poolings."""

    entry: Entry
    argument: tuple[int | str, ...] = ()
    joined: "tuple[Builder, ...]" = ()
    """The poolings that `+` joins in the name."""

    @property
    def members(self) -> "tuple[Builder, ...]":
        """The joined poolings, or this builder alone."""
        return self.joined or (self,)

    @property
    def statistic(self) -> Statistic:
        """`Pooling.statistic` of the first pooling."""
        return self.members[0].entry.module.statistic

    @property
    def head(self) -> HeadName:
        """`Pooling.head`: "linear" if all joined poolings have this head."""
        return "linear" if all(member.entry.module.head == "linear" for member in self.members) else "hidden"

    @property
    def any_width(self) -> bool:
        """`Pooling.any_width`: True if it is True for all joined poolings."""
        return all(member.entry.module.any_width for member in self.members)

    @property
    def has_maps(self) -> bool:
        """True if the modules have attention maps. A baseline, which a function builds, has none."""
        return any(getattr(member.entry.module, "maps", None) for member in self.members)

    def build(self, *values: Any) -> Any:
        """Build the module from the values for `Encoder.build`, `Pooling.build` or `WholeModel.build`.

        Raises:
            PointsetError: the constructor of a user-defined class takes other arguments.
        """
        if self.joined:
            return self.entry.module([member.build(*values) for member in self.joined])
        try:
            return self.entry.module.build(*values, *self.argument)
        except TypeError as error:
            if not self.entry.user_defined:
                raise
            wrong = f"{self.entry.kind} {self.entry.name!r} cannot be built ({error})"
            raise PointsetError(f"{wrong}: give its class a `build` that calls the constructor") from error


REGISTERED: dict[tuple[Kind, str], Entry] = {}


def register(kind: Kind, name: str, listed: str = "") -> Callable[[T], T]:
    """Register the decorated class. `listed` is its name in lists, by default `name` without an optional argument."""
    return lambda module: enter(Entry(kind, name, module, listed or without_argument(name)))


def without_argument(name: str) -> str:
    """Return a name without its optional argument."""
    return re.sub(r"\[.*\]", "", name)


def enter(entry: Entry) -> Any:
    """Add an entry to the registry, and return its class or function."""
    REGISTERED[entry.kind, entry.name] = entry
    return entry.module


def entries(kind: Kind) -> list[Entry]:
    """Return all entries of a kind, sorted by name."""
    return sorted((entry for entry in REGISTERED.values() if entry.kind == kind), key=lambda entry: entry.name)


def entry_of(module: nn.Module) -> Entry | None:
    """Return the entry of a module's class, or None."""
    return next((entry for entry in REGISTERED.values() if entry.module is type(module)), None)


def find_builder(kind: Kind, name: str) -> Builder | None:
    """Return the builder for a name, or None. Poolings joined by `+` have one builder.

    Raises:
        PointsetError: the number in the name is above `LARGEST_NUMBER`.
    """
    if kind == "pooling" and "+" in name:
        joined = tuple(builder for word in name.split("+") if (builder := find_builder("pooling", word)))
        return Builder(REGISTERED["pooling", JOIN], (), joined) if len(joined) > name.count("+") else None
    for entry in entries(kind):
        if match := entry.pattern.fullmatch(name):
            groups = match.groupdict(default="1")
            argument = tuple(value if key == "name" else int(value) for key, value in groups.items())
            if any(isinstance(value, int) and value > LARGEST_NUMBER for value in argument):
                raise PointsetError(f"the number in {name} must be at most {LARGEST_NUMBER}")
            return Builder(entry, argument)
    return None
