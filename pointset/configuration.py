"""What a run is made of, as data: frozen dataclasses that a flag or a file fills and that are saved beside results.

Nothing heavy is imported here, so that `pointset --help` answers at once.
"""

import dataclasses
import math
import numbers
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Self, Union, get_args, get_origin, get_type_hints

from pointset.errors import PointsetError

SEED_LIMIT = 2**63
"""Seeds are below it: the generators of torch and numpy both take them."""

Form = Literal["reference", "paper"]
Scale = Literal["model", "head"] | float
NormName = Literal["none", "layer", "set", "group", "instance", "batch"]
ScoreName = Literal["dot", "bilinear", "additive"]
WeightsName = Literal["softmax", "sparsemax", "entmax15", "csoftmax", "csparsemax"]
CONSTRAINED: tuple[WeightsName, ...] = ("csoftmax", "csparsemax")
"""Weights with an upper bound."""
Coverage = Literal["none", "seeds", "heads"]
Precision = Literal["float32", "bfloat16"]
SeedSource = Literal["trained", "pooled", "mean", "max", "statistics"]
InitialName = Literal["normal", "xavier"]


def own_norm(form: Form) -> NormName:
    """The norm that a published form of MAB has by itself."""
    return "layer" if form == "paper" else "none"


class Checked:
    """Base of the configurations: the types of all fields are checked when the object is made."""

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            fits = _fits(value, hints[field.name])
            allowed = _literal_values(hints[field.name])
            if allowed and not fits and value is not None:
                choices = ", ".join(map(repr, allowed))
                raise PointsetError(f"{field.name}={value!r} is unknown: choose one of {choices}")
            if not fits:
                wanted = getattr(field.type, "__name__", field.type)
                raise PointsetError(f"{field.name}={value!r} is of the wrong type: give {wanted}")

    @classmethod
    def from_file(cls, values: dict[str, Any]) -> Self:
        """Build from a TOML table, which has no null: "none" stands for no value."""
        hints = get_type_hints(cls)
        found = dict(values)
        for name, value in found.items():
            hint = hints.get(name, str)
            if value == "none" and _fits(None, hint) and "none" not in _literal_values(hint):
                found[name] = None
        return cls.from_dict(found)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Build from a mapping, where lists may be tuples; an unknown key is an error that lists the known ones."""
        known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        for key in values:
            if key not in known:
                raise PointsetError(f"{key!r} is no option of {cls.__name__}: known are {', '.join(known)}")
        return cls(**{name: tuple(value) if isinstance(value, list) else value for name, value in values.items()})

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain data, for JSON: lists for tuples."""
        fields = dataclasses.asdict(self)  # type: ignore[call-overload]
        return {name: list(value) if isinstance(value, tuple) else value for name, value in fields.items()}


def check_seed(seed: int, name: str = "seed") -> None:
    """Raise a PointsetError for a number that cannot seed a generator."""
    if not 0 <= seed < SEED_LIMIT:
        raise PointsetError(f"{name}={seed} is no seed: give a whole number from 0 up to 2^63")


def _check_least(options: Any, **least: float) -> None:
    """Raise a PointsetError for the first field that is not None and below its least value, or not finite."""
    for name, bound in least.items():
        value = getattr(options, name)
        if value is not None and not bound <= value < math.inf:
            raise PointsetError(f"{name}={value} is out of range: give at least {bound}")


def _check_positive(options: Any, *names: str) -> None:
    """Raise a PointsetError for the first field that is not None and not a positive finite number."""
    for name in names:
        value = getattr(options, name)
        if value is not None and not 0.0 < value < math.inf:
            raise PointsetError(f"{name}={value} is not positive: give a number above 0")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type, as far as the configurations use types."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (UnionType, Union):  # `Literal[...] | None` makes the second
        return any(_fits(value, part) for part in parts)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(part, parts[0]) for part in value)
    if hint in (int, float):
        number = numbers.Integral if hint is int else numbers.Real
        return isinstance(value, number) and not isinstance(value, bool)
    return isinstance(value, hint)


def _literal_values(hint: Any) -> tuple[Any, ...]:
    """The values a `Literal`, or an optional one, or a tuple of them, allows; empty for other types."""
    parts = [hint, *get_args(hint)]
    return next((get_args(part) for part in parts if getattr(part, "__origin__", None) is Literal), ())


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Checked):
    """How a zoo model is built, apart from its name and its classes. Defaults are the Set Transformer authors'."""

    dim: int = 256
    """Width d of every layer."""
    heads: int = 4
    """Attention heads h; they share the width, d / h each."""
    layers: int | None = None
    """Depth of the encoder; None takes the published one (rff 4, rffp 3, sab 2, isab 2)."""
    form: Form = "reference"
    """Which published MAB: "reference" (the authors' released code) or "paper" (arXiv 1810.00825, eq. 6)."""
    scale: Scale = "model"
    """Logits are divided by sqrt(d) ("model", as published) or by sqrt(d / h) ("head", usual practice), or multiplied
    by a number."""
    norm: NormName | None = None
    """"layer", "set", "group", "instance", "batch" or "none", in every block; None takes the form's own: "layer" for
    "paper", "none" for "reference"."""
    prenorm: bool = False
    """Normalise the inputs of each residual branch, not its sum."""
    dropout: float = 0.5
    """Rate between pooling and the last layers, as published."""
    row_dropout: float = 0.0
    """Rate on the rows that leave each layer of the encoder."""
    attention_dropout: float = 0.0
    """Rate on the attention weights of every block."""
    seeds: SeedSource = "trained"
    """Where PMA takes its seeds: trained vectors, or computed from the set's "mean" ("pooled" is the same), "max", or
    "statistics" (mean, largest, smallest value and deviation, one for each seed in turn)."""
    initial: InitialName = "normal"
    """Initial inducing points and seeds: "normal" (unit variance) or "xavier" (as released, nearly equal rows)."""
    weights: tuple[WeightsName, ...] = ("softmax",)
    """What turns logits into attention weights, one for all heads or one for each; csoftmax and csparsemax keep to
    `bound`. A name alone may stand for a tuple of it."""
    pool_weights: tuple[WeightsName, ...] | None = None
    """PMA's own weights; None takes `weights`."""
    score: ScoreName = "dot"
    """What makes a logit of a query and a key."""
    score_layers: int = 1
    """Hidden layers of the additive score."""
    temperature: float = 1.0
    """Attention logits are divided by this."""
    trained_temperature: bool = False
    """Train a temperature for each head, from `temperature` on."""
    bound: float = 2.0
    """The most that constrained weights give a point, as a multiple of uniform attention; with `coverage`, the most
    that it gets from all seeds or heads together, as a multiple of what a point gets from them on average."""
    coverage: Coverage = "none"
    """PMA's constrained weights: each of the "seeds", or of the "heads", gets what those before it have left."""

    def __post_init__(self) -> None:
        for name in ("weights", "pool_weights"):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, (given,))
        super().__post_init__()
        _check_least(self, dim=1, heads=1, layers=1)
        if self.dim % self.heads:
            raise PointsetError(f"dim={self.dim} cannot be shared by heads={self.heads}: give a multiple of the heads")
        for name in ("dropout", "row_dropout", "attention_dropout"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise PointsetError(f"{name}={getattr(self, name)} is no rate: give a number from 0 up to 1, without 1")
        _check_positive(self, "temperature", *(["scale"] if not isinstance(self.scale, str) else []))
        self._check_weights()
        if self.prenorm and (self.norm or own_norm(self.form)) == "none":
            raise PointsetError(
                f"prenorm does nothing without a norm, and form {self.form!r} has none: give norm=layer or norm=set"
            )

    def _check_weights(self) -> None:
        _check_least(self, score_layers=1, bound=1)
        pooling = self.pool_weights or self.weights
        for names in (self.weights, pooling):
            if len(names) not in (1, self.heads):
                raise PointsetError(f"weights={names} are {len(names)} for heads={self.heads}: give 1, or 1 a head")
        if self.coverage != "none" and not set(pooling) <= set(CONSTRAINED):
            raise PointsetError(
                f"coverage={self.coverage!r} shares out an upper bound, and weights={', '.join(pooling)} have none: "
                "give pool_weights=csparsemax or csoftmax"
            )


@dataclass(frozen=True, kw_only=True)
class Recipe(Checked):
    """How a model is trained. Every row of a comparison shares one recipe."""

    epochs: int = 50
    """Passes over the training shapes."""
    steps: int | None = None
    """Optimiser steps in all, in place of `epochs`; the last epoch is cut short."""
    batch_size: int = 32
    """Shapes per step."""
    optimizer: Literal["adamw", "adam"] = "adamw"
    """AdamW decays weights directly; Adam adds no decay."""
    learning_rate: float = 1e-3
    """Peak learning rate."""
    weight_decay: float = 1e-2
    """AdamW's decay, on matrices only: norms, biases, inducing points and seeds are left alone."""
    schedule: Literal["cosine", "step", "constant"] = "cosine"
    """Learning rate after the warm-up: to zero along a cosine, by steps, or unchanged."""
    warmup: float = 0.05
    """Share of all steps in which the rate rises linearly from zero."""
    step_every: int = 20_000
    """Steps between the drops of schedule "step"."""
    step_factor: float = 0.3
    """What each drop multiplies the rate by."""
    label_smoothing: float = 0.1
    """Share of the target spread over all classes."""
    clip_norm: float | None = 1.0
    """Largest gradient norm; None does not clip."""
    augment: tuple[str, ...] = ("scale", "jitter")
    """Augmentations in order, by name."""
    validation: float = 0.0
    """Share of the training shapes, class by class, held out to watch and to stop on."""
    patience: int | None = None
    """Stop after so many epochs without a better validation accuracy, and keep the best; needs `validation`."""
    precision: Precision = "float32"
    """Of the matrix products while training: "bfloat16" is mixed precision (weights, sums and losses stay float32),
    faster on a GPU, and on a CPU that has instructions for it (with AMX 1.7 to 2.9 times, at width 256 and 100 points).
    Evaluation is in float32 always."""
    device: str = "auto"
    """"auto" takes a GPU where there is one; else a torch device name."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_least(self, epochs=1, steps=1, batch_size=1, step_every=1, patience=1, weight_decay=0)
        _check_positive(self, "learning_rate", "step_factor", "clip_norm")
        for name in ("validation", "warmup", "label_smoothing"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise PointsetError(f"{name}={getattr(self, name)} is no share: give a number from 0 up to 1")
        if self.patience is not None and self.validation == 0.0:
            raise PointsetError("patience needs a validation split to watch: give validation, say 0.1")


@dataclass(frozen=True, kw_only=True)
class DataOptions(Checked):
    """Which point sets a run sees. Every row of a comparison shares them."""

    points: int = 1024
    """Points per set."""
    pool_points: int = 2048
    """Points sampled once per mesh, from which sets are drawn."""
    normalize: Literal["unit-sphere", "standardize", "none"] = "unit-sphere"
    """What is done to each set."""
    sampler: Literal["uniform", "fps", "poisson"] = "uniform"
    """How a mesh becomes a pool of points."""
    data_seed: int = 0
    """Seeds pools and fixed test subsets."""
    split_seed: int = 0
    """Seeds the split of a folder that has none."""
    variant: str | None = None
    """Which version of a data set that comes in several, such as PB_T50_RS of ScanObjectNN."""
    up: Literal["y", "z"] | None = None
    """Up axis; None takes the card's, or z for a folder."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_least(self, points=1, pool_points=1)
        check_seed(self.data_seed, "data_seed")
        check_seed(self.split_seed, "split_seed")


@dataclass(frozen=True, kw_only=True)
class QuickModel(ModelOptions):
    """`ModelOptions` at a width that a laptop trains in seconds."""

    dim: int = 64
    dropout: float = 0.2


@dataclass(frozen=True, kw_only=True)
class QuickData(DataOptions):
    """`DataOptions` for small sets."""

    points: int = 128


@dataclass(frozen=True, kw_only=True)
class QuickRecipe(Recipe):
    """`Recipe` for minutes, not hours."""

    epochs: int = 50
    learning_rate: float = 2e-3
    augment: tuple[str, ...] = ("rotate-up", "scale", "jitter")
