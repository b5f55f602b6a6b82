"""How a model is built, as data. No torch is imported here, so that `pointset --help` answers at once."""

import dataclasses
from dataclasses import dataclass
from typing import Annotated

from pointset.configuration import (
    COMMON,
    AttentionFields,
    AttentionOptions,
    DecoderName,
    Depth,
    HeadNormName,
    InitialName,
    LocalFeatures,
    NonNegative,
    SeedSource,
    Share,
    WeightingOption,
    Width,
)
from pointset.errors import PointsetError


@dataclass(frozen=True, kw_only=True)
class ModelOptions(AttentionFields):
    """How a zoo model is built, apart from its name and its classes.

    The defaults, except `initial`, are those of the Set Transformer authors. Attention is `Att(Q, K, V; score, weights)
    = weights(score(Q, K)) V`; `score` and `weights` are options of every attention block.

    Two different forms of the MAB are published, so always name the form with a result: `form="reference"` is the
    authors' released code, `form="paper"` the equations of arXiv 1810.00825. Both divide logits by sqrt(d);
    `scale="head"` divides by sqrt(d / heads), as transformers usually do. With the released initialisation
    (`initial="xavier"`), all inducing points start nearly equal: the mean distance between the attention rows of 16 of
    them is 0.0006 (at most 1), against 0.027 for `initial="normal"`.

    Example:
        >>> options = pointset.ModelOptions(dim=64, heads=4, pool_weights="sparsemax")
        >>> options.pool_weights
        ('sparsemax',)
    """

    dim: Annotated[Width, COMMON] = 256
    """Width d of every layer."""
    local_features: Annotated[LocalFeatures, COMMON] = "none"
    """Local features of each point as inputs beside its coordinates, from which they are computed: "upright" for shapes
    in the pose of the training shapes, "invariant" for any pose; see `pointset.data.local_features`."""
    local_feature_noise: NonNegative = 0.1
    """Standard deviation of the noise on these numbers in training, which are standardised."""
    local_feature_dropout: Share = 0.1
    """Share of the sets without these numbers in training."""
    layers: Depth | None = None
    """Layers of the encoder; None takes the published number (rff 4, rffp 3, sab 2, isab 2, dumlp 2)."""
    dropout: Share = 0.5
    """Dropout between the pooling and the last layers, as published."""
    pooled_dropout: Share | None = None
    """Dropout on the pooled vectors; None takes `dropout`, as published. If the head has a hidden layer, `dropout`
    applies after that layer."""
    pool_seeds: SeedSource = "trained"
    """The seeds of PMA: trained vectors, or computed from the set: its "mean" (or "pooled"), "max", or
    "statistics" (mean, maximum, minimum and standard deviation in turn, one per seed)."""
    initial: InitialName = "normal"
    """Initial inducing points and seeds: "normal" (unit variance) or "xavier" (as released, nearly equal rows)."""
    head: DecoderName = "released"
    """Layers between PMA and the logits: "released" is a SAB if there are several seeds, as in the published runs;
    "rff" gives rFF(SAB(PMA_k(Z))) for any number of seeds (arXiv 1810.00825, eq. 15)."""
    head_dim: Width | None = None
    """Width of the head's hidden layer after poolings other than PMA; None takes `dim`."""
    head_norm: HeadNormName = "none"
    """Norm of the head's hidden layer, before its activation: "none", "layer" or "batch"."""
    pool_weights: tuple[WeightingOption, ...] | None = None
    """Weights function of PMA; None takes `weights`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for pooling in (False, True):
            self.attention(pooling=pooling)
        if self.dim % self.heads:
            raise PointsetError(f"dim must be a multiple of heads, got dim={self.dim} and heads={self.heads}")

    def attention(self, *, pooling: bool = False) -> AttentionOptions:
        """What PMA is built with, or what all other attention blocks are, which have no coverage."""
        given = {field.name: getattr(self, field.name) for field in dataclasses.fields(AttentionOptions)}
        own = {"weights": self.pool_weights or self.weights} if pooling else {"coverage": "none"}
        return AttentionOptions(**given | own)
