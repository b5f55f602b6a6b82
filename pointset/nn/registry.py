"""Encoders, poolings and whole models by name; each is entered in the file that it is written in, by a decorator.

A name may have an argument: `isab<m>` takes a number, `pma[<k>]` takes one or none, `aggr.<name>` takes a word. What is
entered is a class or a function, called with what it has parameters for:

- options of a model by their names: `dim`, `layers`, `norm`, ... (`pointset.zoo.options.ModelOptions`);
- `attention` and `pool_attention`: the `AttentionOptions` of all blocks, and those of a PMA;
- the argument of the name;
- an encoder: `inputs`, the numbers per point, and `statistic`, what its pooling wants subtracted from each row;
- a whole model: `inputs` and `classes`.

What the zoo, the command line, the export and the tests know of a part, they know from here.
"""

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypedDict, TypeVar, Unpack

from torch import nn

from pointset.errors import PointsetError

Kind = Literal["encoder", "pooling", "model"]
T = TypeVar("T", bound=Callable[..., Any])

MOST_ROWS = 4096
"""Inducing points or seeds of one part: more than any set here has points."""


class Abilities(TypedDict, total=False):
    """What the decorators may say of a part of any kind; see `Part`."""

    listed: str
    reads: Callable[..., Collection[str]]
    packed: bool
    export: bool
    maps: bool


@dataclass(frozen=True, kw_only=True)
class Part:
    """What the registry knows of an encoder, a pooling or a whole model."""

    kind: Kind
    name: str
    """With its argument, if it has one: `isab<m>`."""
    make: Callable[..., Any]
    """Gives a module called as `module(X, mask)`, or for an encoder a list of them, called in turn."""
    source: str = ""
    """Its text, of one that the package does not have itself."""
    listed: str
    """The name under which it stands in `list_models`: `isab16`."""
    reads: Callable[..., Collection[str]] | None = None
    """Which of its parameters it reads, by the argument of its name; None for all. May raise a PointsetError."""
    packed: bool = False
    """Whether it takes sets laid end to end, with a `Packed` in place of the mask; if not, sets are padded for it."""
    export: bool = False
    """Whether its steps can be recorded for files that leave Python: tensor operations that look at no size."""
    maps: bool = False
    """Whether `attention_maps` finds attention in it."""
    activation: type[nn.Module] = nn.ReLU
    """Of an encoder: between the layers of the head."""
    statistic: Literal["max", "mean"] = "max"
    """Of a pooling: what equivariant layers before it subtract from each row."""
    head: Literal["hidden", "linear"] = "hidden"
    """Of a pooling: whether the head has a hidden layer."""

    @property
    def own(self) -> bool:
        """Whether the package has it itself."""
        return self.make.__module__.partition(".")[0] == __name__.partition(".")[0]

    @property
    def where(self) -> str:
        """The class or function, for messages."""
        return f"{self.make.__module__}.{self.make.__qualname__}"

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """What it is called with."""
        return inspect.signature(self.make).parameters

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches its names."""
        text = re.escape(self.name).replace(r"\[", "(?:").replace(r"\]", ")?")
        words = re.sub("<(name)>", r"(?P{\1}\\w+)", text)
        return re.compile(re.sub(r"<(\w+)>", r"(?P<\1>[1-9]\\d*)", words).replace("{name}", "<name>"), re.ASCII)


@dataclass(frozen=True)
class Choice:
    """A part, and what its name says."""

    part: Part
    name: str
    argument: dict[str, int | str]

    @property
    def reads(self) -> set[str]:
        """What it is built from, by name.

        Raises:
            PointsetError: its argument names nothing that there is.
        """
        return set(self.part.reads(**self.argument) if self.part.reads else self.part.parameters)

    def make(self, known: Mapping[str, Any]) -> Any:
        """Build it from what is known, by name, and from the argument of its name."""
        given = {**known, **self.argument}
        made = self.part.make(**{name: given[name] for name in self.part.parameters if name in given})
        for module in made if isinstance(made, list) else [made]:
            module.registered_as = self.part
        return made


PARTS: dict[tuple[Kind, str], Part] = {}


def parts(kind: Kind) -> list[Part]:
    """All of a kind, in the order of their names."""
    return sorted((part for part in PARTS.values() if part.kind == kind), key=lambda part: part.name)


def attending() -> list[Part]:
    """Those with attention that `attention_maps` finds."""
    return [part for part in PARTS.values() if part.maps]


def part_of(module: nn.Module) -> Part | None:
    """The part that a module was built as, or that its class was entered as."""
    built = getattr(module, "registered_as", None)
    return built or next((part for part in PARTS.values() if part.make is type(module)), None)


def find(kind: Kind, name: str) -> Choice | None:
    """The part with this name, or None.

    Raises:
        PointsetError: the name asks for more than `MOST_ROWS` inducing points or seeds.
    """
    for part in parts(kind):
        if match := part.pattern.fullmatch(name):
            said = match.groupdict(default="1")
            argument = {key: value if key == "name" else int(value) for key, value in said.items()}
            if any(isinstance(value, int) and value > MOST_ROWS for value in argument.values()):
                raise PointsetError(f"{name} asks for too many inducing points or seeds: give at most {MOST_ROWS}")
            return Choice(part, name, argument)
    return None


def encoder(name: str, *, activation: type[nn.Module] = nn.ReLU, **abilities: Unpack[Abilities]) -> Callable[[T], T]:
    """Enter a class of modules, or a function that returns a list of them."""
    return lambda make: _entered(make, kind="encoder", name=name, activation=activation, **abilities)


def pooling(
    name: str,
    *,
    statistic: Literal["max", "mean"] = "max",
    head: Literal["hidden", "linear"] = "hidden",
    **abilities: Unpack[Abilities],
) -> Callable[[T], T]:
    """Enter a class of modules."""
    return lambda make: _entered(make, kind="pooling", name=name, statistic=statistic, head=head, **abilities)


def whole_model(name: str, **abilities: Unpack[Abilities]) -> Callable[[T], T]:
    """Enter a class of modules that give logits."""
    return lambda make: _entered(make, kind="model", name=name, **abilities)


def part(make: Callable[..., Any], *, kind: Kind, name: str, listed: str = "", **known: Any) -> Part:
    """What is known of a part; without `listed` it stands in `list_models` without the argument that it may lack."""
    return Part(kind=kind, name=name, make=make, listed=listed or re.sub(r"\[.*\]", "", name), **known)


def enter(entered: Part) -> None:
    """Add a part; one of the same name gives way to it."""
    PARTS[entered.kind, entered.name] = entered


def _entered(make: T, **known: Any) -> T:
    enter(part(make, **known))
    return make
