"""Checked configurations: frozen dataclasses, filled from Python, command lines or files, and saved with results.

Types and ranges are in the annotations. msgspec checks them when an object is made, whatever the source of its values.
This module imports nothing heavy, so that `pointset --help` is fast.
"""

import dataclasses
import numbers
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

import msgspec
from cyclopts import Parameter
from msgspec import Meta

from pointset.arguments import closest_spelling, explained
from pointset.errors import PointsetError, described, quoted

FINITE = sys.float_info.max
COMMON = Parameter(show=True)
"""Mark of options that `--help` always shows. If a command has many options, only `--help-all` shows the others."""

Seed = Annotated[int, Meta(ge=0, le=2**63 - 1, description="a whole number in [0, 2^63)")]
"""A seed that the random number generators of torch and numpy accept."""
Count = Annotated[int, Meta(ge=1, le=2**63 - 1, description="a whole number, at least 1")]
Width = Annotated[int, Meta(ge=1, le=8192, description="a whole number from 1 to 8,192")]
"""Width of a layer. At the maximum width, a weight matrix takes 0.3 GB, and four times as much in training."""
Depth = Annotated[int, Meta(ge=1, le=256, description="a whole number from 1 to 256")]
"""Number of layers of one kind."""
MOST_POINTS = 10**7
PointCount = Annotated[int, Meta(ge=1, le=MOST_POINTS, description="a whole number from 1 to 10,000,000")]
"""Number of points of a set or of a cached shape. Of a larger cloud, a random subset is used."""
SizeRange = Annotated[
    tuple[PointCount, PointCount],
    Meta(description="two numbers of points, the minimum and the maximum, each from 1 to 10,000,000"),
]
Cores = Annotated[int, Meta(ge=1, le=4096, description="a whole number from 1 to 4,096")]
"""Number of threads or processes."""
Positive = Annotated[float, Meta(gt=0, le=FINITE, description="a finite number above 0")]
NonNegative = Annotated[float, Meta(ge=0, le=FINITE, description="a finite number, at least 0")]
Share = Annotated[float, Meta(ge=0, lt=1, description="in [0, 1)")]
PositiveShare = Annotated[float, Meta(gt=0, le=1, description="in (0, 1]")]
Bound = Annotated[float, Meta(ge=1, le=FINITE, description="a finite number, at least 1")]
Text = Annotated[str, Meta(pattern=r"\S", description="a text that is not empty")]

Form = Literal["reference", "paper"]
ScoreScale = Literal["model", "head"] | Positive
NormName = Literal["none", "layer", "set", "group", "instance", "batch"]
HeadNormName = Literal["none", "layer", "batch"]
"""Norms of the head, which gets one vector per set. The other norms are for several rows per set."""
ScoreName = Literal["dot", "bilinear", "additive"]
WeightsName = Literal["softmax", "sparsemax", "entmax15", "csoftmax", "csparsemax"]
CONSTRAINED: tuple[WeightsName, ...] = ("csoftmax", "csparsemax")
"""Weights functions with an upper bound."""
Weighting = str | Callable[..., Any]
"""Name of a weights function, or the function itself."""
if TYPE_CHECKING:
    Weightings = Weighting | tuple[Weighting, ...]
else:
    Weightings = tuple[WeightsName | str, ...]  # the command line cannot take a function
"""Weights functions: one for all heads, or one per head."""
Coverage = Literal["none", "seeds", "heads"]
SeedSource = Literal["trained", "mean", "max"]
InitialName = Literal["normal", "xavier"]
DecoderName = Literal["released", "rff"]
LocalFeatures = Literal["none", "upright", "invariant"]
"""Kinds of local features; see `pointset.data.local_features`."""


class Checked:
    """Base class of configurations: every field is checked when the object is made."""

    def __post_init__(self) -> None:
        for name, kind in _kinds(type(self)).items():
            self._check(name, getattr(self, name), kind)

    def _check(self, name: str, value: Any, kind: Any) -> None:
        check(name, value, kind)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build the configuration from a mapping, such as a table of TOML or JSON; see `changed`."""
        return cls(**cls._fields_of(values))

    def changed(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with these values of the named fields.

        Lists become tuples. As TOML has no null, "none" becomes None for fields that allow None but not "none".

        Raises:
            PointsetError: there is no such field, or a value is not allowed.
        """
        return dataclasses.replace(self, **self._fields_of(values))  # type: ignore[type-var]

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names that `changed` accepts."""
        return list(_kinds(cls))

    @classmethod
    def allowed_values(cls, name: str) -> str | None:
        """Return the allowed values of a field, as text for a message."""
        return allowed(_kinds(cls)[name])

    @classmethod
    def _fields_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        kinds = _kinds(cls)
        check_options(cls.__name__, values, kinds, cls.option_names())
        fields: dict[str, Any] = {}
        for name, value in values.items():
            null = isinstance(value, str) and value == "none" and _fits(None, kinds[name])
            absent = null and not _fits("none", kinds[name])
            fields[name] = None if absent else tuple(value) if isinstance(value, list) else value
        return fields

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON, with tuples converted to lists."""
        fields = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def check(name: str, value: Any, kind: Any) -> None:
    """Raise a PointsetError that names the allowed values, unless the value fits the annotated type or class `kind`."""
    if not _fits(value, kind):
        got = described(value) if getattr(value, "shape", ()) else quoted(value)
        raise PointsetError(f"{name} must be {allowed(kind)}, got {got}")


def check_counts(**counts: Any) -> None:
    """Raise a PointsetError unless all these arguments are whole numbers, at least 1."""
    for name, value in counts.items():
        check(name, value, Count)


def check_options(owner: str, given: Iterable[str], known: Container[str], listed: Sequence[str]) -> None:
    """Raise a PointsetError for the first unknown option. The message suggests the most similar name in `listed`."""
    if unknown := next((name for name in given if name not in known), None):
        near = closest_spelling(unknown, listed)
        raise PointsetError(
            f"{quoted(unknown)} is not an option of {owner}: did you mean {near}? Known: {', '.join(listed)}"
        )


def check_once(what: str, values: Sequence[object]) -> None:
    """Raise a PointsetError that names the first repeated value, if any."""
    if twice := [value for value, count in Counter(values).items() if count > 1]:
        raise PointsetError(f"{what} {quoted(twice[0])} is given twice: leave one out")


def check_seed(seed: int) -> None:
    """Raise a PointsetError unless a number can seed a generator."""
    check("seed", seed, Seed)


def _kinds(cls: type) -> dict[str, Any]:
    """Return the annotated types of a configuration's fields."""
    hints = get_type_hints(cls, include_extras=True)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _fits(value: Any, kind: Any) -> bool:
    if isinstance(value, numbers.Number) and hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, OverflowError, RecursionError):
        return False
    return True


def allowed(kind: Any) -> str | None:
    """Return the allowed values of an annotated type, as text for a message."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return next((part.description for part in parts if isinstance(part, Meta)), None) or allowed(parts[0])
    if origin is Literal:
        return f"one of {', '.join(map(repr, parts))}"
    if origin in (tuple, Sequence):
        return f"a list, each entry {allowed(parts[0])}"
    if origin in (UnionType, Union):  # `Literal[...] | None` is a Union
        return " or ".join(str(allowed(part)) for part in parts if part is not NoneType)
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return words.get(kind, f"of type {getattr(kind, '__name__', kind)}")


@explained
@dataclass(frozen=True, kw_only=True)
class AttentionOptions(Checked):
    """Options of attention blocks, except their widths. The defaults are those of the Set Transformer authors.

    Example:
        >>> options = pointset.nn.AttentionOptions(heads=8, weights="sparsemax")
        >>> pointset.nn.SAB(3, 16, options)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    heads: Width = 4
    """Number h of attention heads. In a layer of width d, each head has width d / h."""
    form: Form = "reference"
    """Form of the attention block, the MAB: "reference" (the released code) or "paper" (arXiv 1810.00825, eq. 6)."""
    norm: NormName | None = None
    """Norm in every block: "layer", "set", "group", "instance", "batch" or "none". None means "layer" for form "paper",
    "none" for form "reference", and "batch" for dumlp."""
    prenorm: bool = False
    """Normalise the input of each residual branch instead of the sum after it."""
    scale: ScoreScale = "model"
    """Scale of the attention logits: "model" divides them by sqrt(d), as published, and "head" by sqrt(d / h), as is
    usual. A number multiplies them."""
    score: ScoreName = "dot"
    """Function that computes an attention logit from a query and a key."""
    score_layers: Depth = 1
    """Number of hidden layers of the additive score."""
    temperature: Positive = 1.0
    """Temperature, by which attention logits are divided."""
    trained_temperature: bool = False
    """Train a temperature for each head, with the initial value `temperature`."""
    weights: Weightings = ("softmax",)
    """Function from logits to attention weights: one name for all heads, or one name per head. It may be a name
    registered with `pointset.register_weights`, or in Python a function f(logits, mask). csoftmax and csparsemax limit
    each weight by `bound`."""
    bound: Bound = 2.0
    """Upper bound of the csoftmax and csparsemax weights of a point, as a multiple of uniform attention, 1 / n. With
    `coverage`, upper bound of their sum over all seeds or heads, as a multiple of this sum under uniform attention."""
    coverage: Coverage = "none"
    """For PMA with csoftmax or csparsemax: all "seeds" or all "heads" share one bound for each point. Their weights are
    computed in order. The weights of earlier seeds or heads are subtracted from the bound."""
    attention_dropout: Share = 0.0
    """Dropout on the attention weights of every block."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.functions) not in (1, self.heads):
            raise PointsetError(
                f"weights must be one entry, or one for each of heads={self.heads}, got {quoted(self.functions)}"
            )
        if self.prenorm and self.norm_name == "none":
            raise PointsetError(f"prenorm needs a norm, and form={self.form!r} has none: use norm=layer or norm=set")

    @classmethod
    def _fields_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        fields = super()._fields_of(values)
        return fields | {"weights": as_functions(fields["weights"])} if "weights" in fields else fields

    @property
    def norm_name(self) -> NormName:
        """Norm of the blocks: `norm`, or the default of the form."""
        return self.norm or ("layer" if self.form == "paper" else "none")

    @property
    def functions(self) -> tuple[Weighting, ...]:
        """`weights` as a tuple."""
        return as_functions(self.weights)

    def check_coverage(self) -> None:
        """Raise a PointsetError if `coverage` is set, but the weights have no upper bound."""
        names = [name_of(function) for function in self.functions]
        if self.coverage != "none" and not set(names) <= set(CONSTRAINED):
            raise PointsetError(
                f"coverage={self.coverage!r} needs weights with an upper bound, got weights={', '.join(names)}: "
                "use csparsemax or csoftmax"
            )

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON. Raise a PointsetError for a function instead of its name."""
        return super().as_dict() | {"weights": names_of("weights", self.weights)}

    def _check(self, name: str, value: Any, kind: Any) -> None:
        if name == "weights":
            check_weights(name, value)
        else:
            super()._check(name, value, kind)


def as_functions(weights: Weightings) -> tuple[Weighting, ...]:
    """Return one or several weights functions as a tuple."""
    return weights if isinstance(weights, tuple) else (weights,)


def name_of(weights: Weighting) -> str:
    """Return the name of a weights function for messages and reprs."""
    return weights if isinstance(weights, str) else str(getattr(weights, "__name__", type(weights).__name__))


def names_of(option: str, weights: Weightings) -> list[str]:
    """Return the names of weights functions for JSON. Raise a PointsetError for a function instead of its name."""
    for function in as_functions(weights):
        if not isinstance(function, str):
            raise PointsetError(
                f"{option} has the function {name_of(function)}, which cannot be saved: register it with "
                "pointset.register_weights and use its name"
            )
    return [str(function) for function in as_functions(weights)]


def check_weights(option: str, value: Any) -> None:
    """Raise a PointsetError unless a value is a weights function or its name, or a tuple of them."""
    for function in as_functions(value) or (None,):
        if not (callable(function) or isinstance(function, str)):
            raise PointsetError(
                f"{option} must be a list, each entry {allowed(WeightsName)}, a name registered with "
                f"pointset.register_weights, or in Python a function f(logits, mask), got {quoted(value)}"
            )


RELEASED = AttentionOptions()
"""Options of the attention block in the code that the Set Transformer's authors released."""
