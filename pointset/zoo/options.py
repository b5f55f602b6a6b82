"""How a model is built, as data. No torch is imported here, so that `pointset --help` answers at once."""

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from pointset.configuration import (
    CONSTRAINED,
    FINITE,
    Checked,
    Count,
    Coverage,
    Form,
    InitialName,
    NormName,
    Positive,
    Scale,
    ScoreName,
    SeedSource,
    Share,
    WeightsName,
    own_norm,
)
from pointset.errors import PointsetError

Bound = Annotated[float, Meta(ge=1, le=FINITE, description="a finite number, at least 1")]


@dataclass(frozen=True, kw_only=True)
class ModelOptions(Checked):
    """How a zoo model is built, apart from its name and its classes. Defaults are the Set Transformer authors'."""

    dim: Count = 256
    """Width d of every layer."""
    heads: Count = 4
    """Attention heads h; they share the width, d / h each."""
    layers: Count | None = None
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
    dropout: Share = 0.5
    """Rate between pooling and the last layers, as published."""
    row_dropout: Share = 0.0
    """Rate on the rows that leave each layer of the encoder."""
    attention_dropout: Share = 0.0
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
    score_layers: Count = 1
    """Hidden layers of the additive score."""
    temperature: Positive = 1.0
    """Attention logits are divided by this."""
    trained_temperature: bool = False
    """Train a temperature for each head, from `temperature` on."""
    bound: Bound = 2.0
    """The most that constrained weights give a point, as a multiple of uniform attention; with `coverage`, the most
    that it gets from all seeds or heads together, as a multiple of what a point gets from them on average."""
    coverage: Coverage = "none"
    """PMA's constrained weights: each of the "seeds", or of the "heads", gets what those before it have left."""

    def __post_init__(self) -> None:
        for name in ("weights", "pool_weights"):
            if isinstance(given := getattr(self, name), str):
                object.__setattr__(self, name, (given,))
        super().__post_init__()
        if self.dim % self.heads:
            raise PointsetError(f"dim must be a multiple of heads, got dim={self.dim} and heads={self.heads}")
        if self.prenorm and (self.norm or own_norm(self.form)) == "none":
            raise PointsetError(f"prenorm needs a norm, and form={self.form!r} has none: use norm=layer or norm=set")
        self._check_weights()

    def _check_weights(self) -> None:
        pooling = self.pool_weights or self.weights
        for names in (self.weights, pooling):
            if len(names) not in (1, self.heads):
                raise PointsetError(f"weights must be 1 name or 1 for each of heads={self.heads}, got {names}")
        if self.coverage != "none" and not set(pooling) <= set(CONSTRAINED):
            raise PointsetError(
                f"coverage={self.coverage!r} shares out an upper bound, and weights={', '.join(pooling)} have none: "
                "use pool_weights=csparsemax or csoftmax"
            )
