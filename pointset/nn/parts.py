"""Base classes of what models are made of: encoders, poolings and whole models, and what each says of itself.

An ability is an attribute of the class: the zoo, the command line, attention maps and export all read it there. Blocks
inside parts have `maps` and `no_decay` too.
"""

from collections.abc import Iterable
from typing import Any, ClassVar, Literal

from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.masks import Mask

Statistic = Literal["max", "mean"]
HeadName = Literal["hidden", "linear"]
MapKind = Literal["reads", "writes", "pools", "self", "decides"]
Side = Literal["keys", "queries", "both", "neither"]
Maps = dict[str, tuple[MapKind, Side]]
"""By the name of each module inside that computes attention: the kind of its map, and which side the points are."""


class Part(nn.Module):
    """What encoders, poolings and whole models have in common."""

    reads: ClassVar[tuple[str, ...] | None] = None
    """Fields of `ModelOptions` that change it, beside `dim`; "attention" and "pool_attention" stand for those of all
    attention blocks and of PMA. None means any."""
    export: ClassVar[bool] = False
    """True if it is made of tensor operations that do not depend on sizes, and takes a mask."""
    maps: ClassVar[Maps] = {}
    """Its attention maps; empty if it has none."""
    no_decay: ClassVar[tuple[str, ...]] = ()
    """Names of matrices that are not linear maps: nothing speaks for pulling them to zero."""

    @classmethod
    def check_argument(cls, argument: Any) -> None:
        """Raise a PointsetError for an argument in its name that is not allowed."""


class Pooling(Part):
    """From rows Z [B, n, width] and a mask [B, n], True at real rows, to pooled rows [B, k, d] or [B, d]."""

    statistic: ClassVar[Statistic] = "max"
    """What equivariant layers before it subtract from each row."""
    head: ClassVar[HeadName] = "hidden"
    """Whether the head after it has two layers ("hidden") or one ("linear")."""
    any_width: ClassVar[bool] = False
    """True if it takes rows of any width, such as points; otherwise they have the width `dim`."""

    @classmethod
    def make(cls, options: Any, width: int, argument: Any = None) -> "Pooling":
        """Build it from `ModelOptions`, the width of the rows, and the argument in its name."""
        return cls() if argument is None else cls(argument)


class Encoder(nn.ModuleList, Part):
    """Equivariant: from points X [B, n, inputs] and a mask [B, n] to rows [B, n, dim]; by default layers in turn.

    Args:
        layers: modules called in turn as `layer(X, mask)`.
    """

    activation: ClassVar[type[nn.Module]] = nn.ReLU
    """Between the layers of the head."""
    subtracts_statistic: ClassVar[bool] = False
    """True if its layers subtract the statistic of the pooling, which a row of a table then names: "rFFp-max + max"."""

    def __init__(self, layers: Iterable[nn.Module] = ()) -> None:
        super().__init__(layers)

    @classmethod
    def make(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> "Encoder":
        """Build it from `ModelOptions`, the numbers per point, what is known of the pooling, and the argument."""
        made: Any = cls
        return made(inputs, options.dim) if argument is None else made(inputs, options.dim, argument)

    def forward(self, X: Float[Tensor, "B n inputs"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of the points."""
        for layer in self:
            X = layer(X, mask)
        return X


class WholeModel(Part):
    """From points [B, n, inputs] and a mask to logits [B, classes]."""

    @classmethod
    def make(cls, options: Any, inputs: int, classes: int) -> "WholeModel":
        """Build it from `ModelOptions`, the numbers per point and the number of logits."""
        return cls(inputs, classes, options.dropout)
