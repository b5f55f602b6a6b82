"""Options of a model. This module does not import torch, so that `pointset --help` is fast."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Annotated, Any, Self

from cyclopts import Parameter

from pointset.arguments import explained
from pointset.configuration import (
    COMMON,
    RELEASED,
    AttentionOptions,
    Checked,
    DecoderName,
    Depth,
    HeadNormName,
    InitialName,
    LocalFeatures,
    NonNegative,
    SeedSource,
    Share,
    Weightings,
    Width,
    as_functions,
    check_weights,
    names_of,
)
from pointset.errors import PointsetError, quoted

OF_ATTENTION = [field.name for field in fields(AttentionOptions)]


@explained
@dataclass(frozen=True, kw_only=True)
class ModelOptions(Checked):
    """Options of a model of the zoo, apart from its name and its classes.

    The defaults, except `initial`, are those of the Set Transformer authors. In `create_model`, TOML files and flags,
    the fields of `attention` can be given by name, such as `heads=8`.

    Two forms of the attention block (MAB) are published, so results should name the form: `form="reference"` is the
    authors' released code, and `form="paper"` has the equations of arXiv 1810.00825. In both forms, logits are divided
    by sqrt(d); with `scale="head"`, they are divided by sqrt(d / heads), as in most transformers. With the
    initialisation of the released code (`initial="xavier"`), the inducing points are nearly equal before training: the
    mean total variation distance (at most 1) between the attention weights of 16 inducing points is 0.0006. With
    `initial="normal"`, it is 0.027.

    Example:
        >>> options = pointset.ModelOptions(dim=64, attention=pointset.nn.AttentionOptions(heads=8))
        >>> options.changed({"heads": 2, "layers": 3}).attention.heads
        2
    """

    attention: Annotated[AttentionOptions, Parameter(name="*")] = RELEASED
    """Options of the attention blocks; see `pointset.nn.AttentionOptions`. The encoders rff, rffp and dumlp use the
    field `norm`, too."""

    dim: Annotated[Width, COMMON] = 256
    """Width d of every layer."""
    local_features: Annotated[LocalFeatures, COMMON] = "none"
    """Geometric features of each point's neighbours as additional inputs: "upright" for shapes in the pose of the
    training shapes, "invariant" for any pose."""
    local_feature_noise: NonNegative = 0.1
    """Standard deviation of the noise that training adds to the standardised local features."""
    local_feature_dropout: Share = 0.1
    """Probability that all local features of a point set are set to zero in training."""
    layers: Depth | None = None
    """Number of encoder layers. None means the published number (rff 4, rffp 3, sab 2, isab 2, dumlp 2)."""
    dropout: Share | None = None
    """Dropout rate before PMA, on the pooled vectors and after the hidden layer of the head. None means the published
    rate 0.5 if `dim` is at least 256, and otherwise `dim` / 512."""
    pooled_dropout: Share | None = None
    """Dropout rate on the pooled vectors alone. None means the rate of `dropout`, as published."""
    pool_seeds: SeedSource = "trained"
    """Seeds of PMA: "trained" vectors, or linear functions of the "mean" or the "max" of each feature over the set."""
    initial: InitialName = "normal"
    """Initial inducing points and seeds: "normal" (unit variance), or "xavier" as in the released code (nearly equal
    vectors)."""
    decoder: DecoderName = "released"
    """Layers between PMA and the last linear layer: "released" adds a SAB if there are several seeds, as in the
    published runs; "rff" computes rFF(SAB(PMA_k(Z))) for any number of seeds (arXiv 1810.00825, eq. 15)."""
    head_dim: Width | None = None
    """Width of the hidden layer of the head, for all poolings except PMA. None means `dim`."""
    head_norm: HeadNormName = "none"
    """Norm of the hidden layer of the head, before its activation: "none", "layer" or "batch"."""
    pool_weights: Weightings | None = None
    """Function from logits to attention weights in PMA. None means `weights`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pool_attention.check_coverage()
        if self.dim % self.attention.heads:
            raise PointsetError(f"dim must be a multiple of heads, got dim={self.dim} and heads={self.attention.heads}")

    @property
    def dropout_rate(self) -> float:
        """The dropout rate; if `dropout` is None, the default for `dim`."""
        return min(0.5, self.dim / 512) if self.dropout is None else self.dropout

    @property
    def block_attention(self) -> AttentionOptions:
        """Options of all attention blocks except PMA: `coverage` is "none"."""
        return self.attention.changed({"coverage": "none"})

    @property
    def pool_attention(self) -> AttentionOptions:
        """Options of the attention of PMA."""
        return self.attention if self.pool_weights is None else replace(self.attention, weights=self.pool_weights)

    @classmethod
    def flat_fields(cls) -> list[Field[Any]]:
        """Return the fields of `AttentionOptions` and all other fields except `attention`: one field per flag."""
        return [*fields(AttentionOptions), *(field for field in fields(cls) if field.name != "attention")]

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names that `changed` accepts."""
        return [field.name for field in cls.flat_fields()]

    def flat(self) -> dict[str, Any]:
        """Return the values of `flat_fields` by name."""
        return {**vars(self.attention), **{name: value for name, value in vars(self).items() if name != "attention"}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the options in a mapping, such as a table of TOML or JSON; see `changed`."""
        return cls().changed(values)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """Return a copy with other values by field name, including fields of `attention`; see `Checked.changed`."""
        attention = values.get("attention", self.attention)
        if isinstance(attention, Mapping):
            attention = self.attention.changed(attention)
        if flat := {name: value for name, value in values.items() if name in OF_ATTENTION}:
            attention = attention.changed(flat)
        own = {name: value for name, value in values.items() if name not in flat}
        return super().changed(own | {"attention": attention})

    @classmethod
    def _fields_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        fields = super()._fields_of(values)
        weights = fields.get("pool_weights")
        return fields if weights is None else fields | {"pool_weights": as_functions(weights)}

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain data for JSON; a PointsetError if a weights function has no name."""
        names = None if self.pool_weights is None else names_of("pool_weights", self.pool_weights)
        return super().as_dict() | {"attention": self.attention.as_dict(), "pool_weights": names}

    def _check(self, name: str, value: Any, kind: Any) -> None:
        if name == "pool_weights" and value is not None:
            check_weights(name, value)
        elif name == "attention":
            if not isinstance(value, AttentionOptions):
                raise PointsetError(f"attention must be AttentionOptions, got {quoted(value)}")
        else:
            super()._check(name, value, kind)
