"""Base classes of encoders, poolings and whole models, with class attributes that describe each class.

`pointset.zoo`, the command line, attention maps and export read these attributes. Blocks inside an encoder or a pooling
also have `maps` and `no_decay`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.inputs import InputError, require_mask, require_rows
from pointset.nn.masks import PADDING_MASKS, Mask, Statistic, non_empty, zero_padded_rows

HeadName = Literal["hidden", "linear"]
MapKind = Literal["reads", "writes", "pools", "self", "support"]
Side = Literal["keys", "queries", "both", "neither"]
Maps = dict[str, tuple[MapKind, Side]]
"""For each submodule with attention, by name: the kind of its attention map, and the side of the map with the
points."""


class RowsModule(nn.Module):
    """Base class of modules that are called with rows (feature vectors) and a mask, and check both."""

    row_widths: tuple[int | None, ...] = (None,)
    """Width of the rows in each of the first arguments of a call, or None for any width. The next argument is a
    mask."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Check the rows and the mask, except under a compiler or an exporter, and call the module."""
        if not torch.compiler.is_compiling():
            self._check_call(given, named)
        return super().__call__(*given, **named)

    def _check_call(self, given: Sequence[Any], named: Mapping[str, Any]) -> None:
        if inverse := next((name for name in PADDING_MASKS if name in named), ""):
            raise InputError(f"{type(self).__name__} has no {inverse}: give mask instead, True at real points")
        for rows, width in zip(given, self.row_widths, strict=False):
            require_rows("rows", rows, width)
        sets = len(self.row_widths)
        mask = given[sets] if len(given) > sets else named.get("mask")
        if mask is not None and len(given) >= sets:
            require_mask(mask, given[sets - 1])


class SetModule(RowsModule):
    """Base class of encoders, poolings and whole models: modules that are registered and built by name."""

    options_used: ClassVar[tuple[str, ...] | None] = None
    """Options of the model, in addition to `dim`, that change the module. None means all. "attention" stands for all
    options of attention blocks, "pool_attention" for all options of PMA."""
    export: ClassVar[bool] = False
    """True if the module can be exported: it takes a mask, and its operations do not depend on sizes."""
    maps: ClassVar[Maps] = {}
    """Attention maps of the submodules; see `Maps`."""
    no_decay: ClassVar[tuple[str, ...]] = ()
    """Names of parameters that are excluded from weight decay."""

    @classmethod
    def check_argument(cls, argument: Any) -> None:
        """Raise a PointsetError if the argument, such as 16 in `isab16`, is not allowed."""


class Pooling(SetModule):
    """Base class of poolings: rows Z [B, n, width] -> pooled rows [B, k, d] or [B, d].

    The mask [B, n] is True at real rows.

    Example:
        >>> class Median(pointset.nn.Pooling):
        ...     def forward(self, Z, mask=None):
        ...         Z = Z if mask is None else Z.masked_fill(~mask[..., None], torch.nan)
        ...         return Z.nanmedian(dim=1).values
        >>> Median()(torch.tensor([[[1.0], [4.0], [9.0]]])).tolist()
        [[4.0]]
    """

    statistic: ClassVar[Statistic] = "max"
    """Statistic that equivariant layers before the pooling subtract from each row."""
    head: ClassVar[HeadName] = "hidden"
    """Head after the pooling: two layers ("hidden") or one ("linear")."""
    any_width: ClassVar[bool] = False
    """True if the pooling takes rows of any width, such as points. Otherwise, it takes rows of width `dim`."""

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> "Pooling":
        """Build the pooling from the model's options, the width of the rows, and the argument in its name."""
        return cls() if argument is None else cls(argument)


class OneRowPool(Pooling):
    """Base class of poolings to one row, in at least float32, because a sum of ones in bfloat16 stops at 256."""

    options_used: ClassVar[tuple[str, ...] | None] = ()
    export = True

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        """Build the pooling from the argument in its name and the width of the rows."""
        return cls(width) if argument is None else cls(argument, width)

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B 1 e"]:
        """Return one row per set. `mask` is True at real rows."""
        mixed = torch.is_autocast_enabled(Z.device.type)
        with torch.autocast(Z.device.type, enabled=False):
            rows = Z.to(torch.promote_types(Z.dtype, torch.float32))
            pooled = self.pooled(zero_padded_rows(rows, mask), mask)
        if mask is not None:
            pooled = pooled.masked_fill(~non_empty(mask), 0.0)
        return pooled if mixed else pooled.to(Z.dtype)

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        """Return one pooled row per set, with finite gradients even for an empty set, whose row `forward` sets to 0."""
        raise NotImplementedError


class Encoder(nn.ModuleList, SetModule):
    """Base class of encoders: points X [B, n, inputs] -> rows [B, n, dim], in the order of the points.

    By default, the layers are called in order. The mask [B, n] is True at real points.

    Args:
        layers: modules that are called as `layer(X, mask)`.

    Example:
        >>> encoder = pointset.nn.Encoder([pointset.nn.SAB(3, 16), pointset.nn.SAB(16, 16)])
        >>> encoder(torch.rand(2, 7, 3)).shape
        torch.Size([2, 7, 16])
    """

    activation: ClassVar[type[nn.Module]] = nn.ReLU
    """The activation between the layers of the model's head."""
    subtracts_statistic: ClassVar[bool] = False
    """True if the layers subtract the pooling's statistic. Tables then name the statistic, as in "rFFp-max + max"."""

    def __init__(self, layers: Iterable[nn.Module] = ()) -> None:
        super().__init__(layers)

    @classmethod
    def build(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> "Encoder":
        """Build the encoder from the model's options, inputs per point, the pooling, and the argument in its name."""
        constructor: Any = cls
        return constructor(inputs, options.dim, *() if argument is None else (argument,))

    def forward(self, X: Float[Tensor, "B n inputs"], mask: Mask | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows, in the order of the points."""
        for layer in self:
            X = layer(X, mask)
        return X


class WholeModel(SetModule):
    """Base class of models without a registered pooling: points [B, n, inputs] -> logits [B, classes]."""

    @classmethod
    def build(cls, options: Any, inputs: int, classes: int) -> "WholeModel":
        """Build the model from its options, the number of inputs per point and the number of logits."""
        return cls(inputs, classes, *() if options.dropout is None else (options.dropout,))
