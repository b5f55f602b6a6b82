"""Encoders, poolings, whole models and users' weights functions by name, each registered where it is defined.

A name may have an argument: a number in `isab<m>`, an optional number (default 1) in `pma[<k>]`, a word in
`aggr.<name>`. Poolings may be joined by `+`, as in `max+pma`.
A part is a class or a function. It is called with those of the following values that are among its parameters:

- options of a model: `dim`, `layers`, `norm`, ... (`pointset.zoo.options.ModelOptions`);
- `attention` and `pool_attention`: the `AttentionOptions` of all blocks, and those of PMA;
- the argument of the name;
- for an encoder: `inputs`, the numbers per point; `statistic`, the statistic of its pooling, which equivariant layers
  subtract; and `any_width`, whether its pooling accepts rows of any width;
- for a pooling: `width`, the width of its input rows. A pooling without this parameter gets rows of width `dim`;
- for a whole model: `inputs` and `classes`.

The zoo, the command line, export and the tests all use this registry.
"""

import dataclasses
import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from torch import nn

from pointset.configuration import USER_WEIGHTS
from pointset.errors import PointsetError

Kind = Literal["encoder", "pooling", "model", "baseline", "weights"]
Statistic = Literal["max", "mean"]
HeadName = Literal["hidden", "linear"]
T = TypeVar("T", bound=Callable[..., Any])

LARGEST_NUMBER = 4096
"""Upper limit for the number in a name: inducing points, seeds, ..."""
JOIN = "<one>+<other>"
"""Name of the part that joins poolings."""


@dataclass(frozen=True)
class Part:
    """A registered encoder, pooling, whole model or weights function."""

    kind: Kind
    name: str
    """Name of the part, with its argument if it has one: `isab<m>`."""
    make: Callable[..., Any]
    """Returns a module called as `module(X, mask)`; for an encoder also a list of them, called in turn. For kind
    "weights", it is the function itself, or the class of a module."""
    listed: str = ""
    """Its name in `list_models`, such as `isab16`; default: the name without the optional argument."""
    reads: Callable[..., Collection[str]] | None = None
    """Returns the names of the parameters that the part uses, given the argument of its name; None means all. Raises a
    PointsetError if the argument is not allowed."""
    export: bool = False
    """Whether it can be exported: its tensor operations do not depend on sizes."""
    maps: bool = False
    """Whether `attention_maps` finds attention in it."""
    activation: type[nn.Module] = nn.ReLU
    """For an encoder: the activation between the layers of the head."""
    layered: bool = True
    """For an encoder: whether it can have several layers, which options can connect."""
    statistic: Statistic = "max"
    """For a pooling: the statistic that equivariant layers before it subtract from each row."""
    head: HeadName = "hidden"
    """For a pooling: whether the head after it has two layers ("hidden") or one ("linear")."""
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
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """The parameters of `make`."""
        return inspect.signature(self.make).parameters

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches its names; the argument is a group."""
        text = re.escape(self.name).replace(r"\[", "(?:").replace(r"\]", ")?")
        allowed = {"name": r"\w+"}
        return re.compile(re.sub(r"<(\w+)>", lambda it: f"(?P{it[0]}{allowed.get(it[1], '[1-9][0-9]*')})", text), re.A)


@dataclass(frozen=True)
class Choice:
    """A part together with the argument in its name."""

    part: Part
    name: str
    argument: dict[str, int | str]
    joined: "tuple[Choice, ...]" = ()
    """The poolings that `+` joins in its name."""

    @property
    def members(self) -> "tuple[Choice, ...]":
        """The joined poolings, or itself if it is a single part."""
        return self.joined or (self,)

    @property
    def reads(self) -> set[str]:
        """The names of the values that it is built from.

        Raises:
            PointsetError: its argument is not allowed.
        """
        if self.joined:
            return set().union(*(choice.reads for choice in self.joined))
        return set(self.part.reads(**self.argument) if self.part.reads else self.part.parameters)

    @property
    def any_width(self) -> bool:
        """For a pooling: whether it, or each of the poolings that it joins, accepts rows of any width."""
        return all("width" in choice.part.parameters for choice in self.members)

    def make(self, known: Mapping[str, Any]) -> list[nn.Module]:
        """Build its modules from values by name and from the argument of its name.

        Raises:
            PointsetError: what it makes is not a module.
        """
        given = {**known, **self.argument}
        if self.joined:
            given["pools"] = [module for choice in self.joined for module in choice.make(known)]
        made = self.part.make(**{name: given[name] for name in self.part.parameters if name in given})
        modules = made if isinstance(made, list) else [made]
        for module in modules:
            if not isinstance(module, nn.Module):
                kind = type(module).__qualname__
                raise PointsetError(f"{self.part.kind} {self.part.name!r} must make a torch.nn.Module, got a {kind}")
            module.registered_as = self.part  # type: ignore[assignment]
        return modules


REGISTERED: dict[tuple[Kind, str], Part] = {}


def register(kind: Kind, name: str, **known: Any) -> Callable[[T], T]:
    """Register the decorated class or function as a part; `known` are the other fields of `Part`."""

    def decorate(make: T) -> T:
        enter(Part(kind, name, make, **known))
        return make

    return decorate


def enter(part: Part) -> None:
    """Add a part to the registry."""
    REGISTERED[part.kind, part.name] = part
    if part.kind == "weights":
        USER_WEIGHTS.add(part.name)


def parts(kind: Kind) -> list[Part]:
    """All parts of a kind, in the order of their names."""
    return sorted((part for part in REGISTERED.values() if part.kind == kind), key=lambda part: part.name)


def part_of(module: nn.Module) -> Part | None:
    """The part from which a module was built, or under which its class is registered."""
    built = getattr(module, "registered_as", None)
    return built or next((part for part in REGISTERED.values() if part.make is type(module)), None)


def find_part(kind: Kind, name: str) -> Choice | None:
    """The part with this name, or None; poolings joined by `+` are one part.

    Raises:
        PointsetError: the number in the name is above `LARGEST_NUMBER`.
    """
    if kind == "pooling" and "+" in name:
        return _join(name)
    for part in parts(kind):
        if match := part.pattern.fullmatch(name):
            groups = match.groupdict(default="1")
            argument = {key: value if key == "name" else int(value) for key, value in groups.items()}
            if any(isinstance(value, int) and value > LARGEST_NUMBER for value in argument.values()):
                raise PointsetError(f"the number in {name} must be at most {LARGEST_NUMBER}")
            return Choice(part, name, argument)
    return None


def _join(name: str) -> Choice | None:
    """Poolings joined by `+` as one part, or None if a name is unknown; it has the abilities that all of them have."""
    joined = [choice for word in name.split("+") if (choice := find_part("pooling", word))]
    if len(joined) <= name.count("+"):
        return None
    members = [choice.part for choice in joined]
    part = dataclasses.replace(
        REGISTERED["pooling", JOIN],
        name=name,
        listed=name,
        maps=any(part.maps for part in members),
        statistic=members[0].statistic,
        head="linear" if all(part.head == "linear" for part in members) else "hidden",
    )
    return Choice(part, name, {}, tuple(joined))
