"""How a model is built, as data. No torch is imported here, so that `pointset --help` answers at once."""

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

    The defaults, except `initial`, are those of the Set Transformer authors. `create_model`, TOML files and flags take
    the fields of `attention` by their own names, as in `heads=8`.

    Two different forms of the MAB are published, so always name the form with a result: `form="reference"` is the
    authors' released code, `form="paper"` the equations of arXiv 1810.00825. Both divide logits by sqrt(d);
    `scale="head"` divides by sqrt(d / heads), as transformers usually do. With the released initialisation
    (`initial="xavier"`), all inducing points start nearly equal: the mean distance between the attention rows of 16 of
    them is 0.0006 (at most 1), against 0.027 for `initial="normal"`.

    Example:
        >>> options = pointset.ModelOptions(dim=64, attention=pointset.nn.AttentionOptions(heads=8))
        >>> options.changed({"heads": 2, "layers": 3}).attention.heads
        2
    """

    attention: Annotated[AttentionOptions, Parameter(name="*")] = RELEASED
    """Options of the attention blocks; see `pointset.nn.AttentionOptions`. `norm` is also that of the encoders rff,
    rffp and dumlp."""

    dim: Annotated[Width, COMMON] = 256
    """Width d of every layer."""
    local_features: Annotated[LocalFeatures, COMMON] = "none"
    """Local features of each point as inputs beside its coordinates, from which they are computed: "upright" for shapes
    in the pose of the training shapes, "invariant" for any pose; see `pointset.data.local_features`."""
    local_feature_noise: NonNegative = 0.1
    """Standard deviation of the noise on these numbers in training, which are standardised."""
    local_feature_dropout: Share = 0.1
    """Probability that all local features of a training set are dropped."""
    layers: Depth | None = None
    """Layers of the encoder; None takes the published number (rff 4, rffp 3, sab 2, isab 2, dumlp 2)."""
    dropout: Share | None = None
    """Dropout between the pooling and the last layers; None takes 0.5 at width 256, as published, and in proportion to
    `dim` below."""
    pooled_dropout: Share | None = None
    """Dropout on the pooled vectors; None takes `dropout`, as published. If the head has a hidden layer, `dropout`
    applies after that layer."""
    pool_seeds: SeedSource = "trained"
    """The seeds of PMA: trained vectors, or linear functions of the "mean" or the "max" of each feature of the set."""
    initial: InitialName = "normal"
    """Initial inducing points and seeds: "normal" (unit variance) or "xavier" (as released, nearly equal rows)."""
    head: DecoderName = "released"
    """Layers between PMA and the logits: "released" is a SAB if there are several seeds, as in the published runs;
    "rff" gives rFF(SAB(PMA_k(Z))) for any number of seeds (arXiv 1810.00825, eq. 15)."""
    head_dim: Width | None = None
    """Width of the head's hidden layer after poolings other than PMA; None takes `dim`."""
    head_norm: HeadNormName = "none"
    """Norm of the head's hidden layer, before its activation: "none", "layer" or "batch"."""
    pool_weights: Weightings | None = None
    """Weights function of PMA; None takes `weights`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.pool_attention.check_coverage()
        if self.dim % self.attention.heads:
            raise PointsetError(f"dim must be a multiple of heads, got dim={self.dim} and heads={self.attention.heads}")

    @property
    def dropout_rate(self) -> float:
        """The dropout, or that of the width where it is None."""
        return min(0.5, self.dim / 512) if self.dropout is None else self.dropout

    @property
    def block_attention(self) -> AttentionOptions:
        """Options of all attention blocks but PMA, without coverage."""
        return self.attention.changed({"coverage": "none"})

    @property
    def pool_attention(self) -> AttentionOptions:
        """Options of the attention of PMA."""
        return self.attention if self.pool_weights is None else replace(self.attention, weights=self.pool_weights)

    @classmethod
    def flat_fields(cls) -> list[Field[Any]]:
        """The fields of `AttentionOptions` and the other fields: flags and `create_model` take their names."""
        return [*fields(AttentionOptions), *(field for field in fields(cls) if field.name != "attention")]

    @classmethod
    def option_names(cls) -> list[str]:
        """The names that `changed` takes."""
        return [field.name for field in cls.flat_fields()]

    def flat(self) -> dict[str, Any]:
        """The values of `flat_fields` by name."""
        return {**vars(self.attention), **{name: value for name, value in vars(self).items() if name != "attention"}}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Build from a mapping, such as a table of TOML or JSON; see `changed`."""
        return cls().changed(values)

    def changed(self, values: Mapping[str, Any]) -> Self:
        """A copy with other values, by the names of fields, those of `attention` included; see `Checked.changed`."""
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
        """The fields as plain data for JSON; raises a PointsetError for a weights function without a name."""
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
