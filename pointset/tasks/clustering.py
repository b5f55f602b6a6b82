"""Amortised clustering: a network predicts, in one pass, the mixture of Gaussians from which a set was drawn.

Source: Lee et al., Set Transformer (arXiv 1810.00825), section 5.3 and its appendix. There are k = 4 components in the
plane, n ~ U{100, ..., 500} elements, and 1 + 2 d = 5 outputs for each component. The loss is -LL0, where LL0 is the
log-likelihood per datum of the predicted mixture. LL1 is the log-likelihood after one EM step from this mixture. The
density of a mixture is

    p(x) = sum_j pi_j N(x; mu_j, diag(sigma_j^2))

The authors' code (github juho-lee/set_transformer at 73432c6, run.py and models.py) differs from the paper. It has n ~
U{300, ..., 599}, two ISABs with 32 inducing points, two SABs after PMA, 4 outputs for each component (one scale for
both axes), and a learning rate that falls to a tenth after 25,000 of 50,000 steps, not after 35,000. This module
follows the paper, and follows the code where the paper has no details: one n for all 10 sets of a batch, and 100 test
batches.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from pointset.comparison.metric import Metric, Size
from pointset.data.batches import epoch_generator
from pointset.nn.layers import Dropout
from pointset.nn.masks import STATISTICS
from pointset.nn.modules import Encoder, Statistic
from pointset.nn.pooling.statistics import MaxPool, MeanPool
from pointset.tasks.set_problem import ENCODER, SetBatch, SetProblem, fully_connected, parts_of, row_model, seeded
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.options import ModelOptions

COMPONENTS = 4
DIMENSIONS = 2
SPREAD = 4.0
"""Means are uniform in [-SPREAD, SPREAD] in each dimension."""
SIGMA = 0.3
"""Standard deviation of every drawn component, in each dimension."""
LEAST_SCALE = 1e-3
"""Minimum scale in predictions and in EM, because a component that shrinks onto one element has an unbounded
likelihood. The minimum is a three-hundredth of SIGMA. A wrong scale of this size costs a model far more likelihood than
it can gain."""


@dataclass(frozen=True)
class GaussianMixtures:
    """One mixture for each set. The order of the components has no meaning."""

    log_proportions: Float[Tensor, "B k"]
    """log pi. The proportions pi of a mixture sum to 1."""
    means: Float[Tensor, "B k d"]
    """mu, the means."""
    scales: Float[Tensor, "B k d"]
    """sigma, the standard deviations, above 0."""

    @classmethod
    def from_output(cls, output: Tensor) -> "GaussianMixtures":
        """Convert a model's output [B, k, 1 + 2 d]. A component has a logit, d means, and d scales before softplus."""
        d = output.shape[2] // 2
        logits, means, raw = output.split([1, d, d], dim=2)
        return cls(logits.squeeze(2).log_softmax(dim=1), means, F.softplus(raw) + LEAST_SCALE)

    def log_joint(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B n k"]:
        """Return log(pi_j N(x_i; mu_j, sigma_j)) for every element i and component j."""
        scales = self.scales.unsqueeze(1)
        standardised = (X.unsqueeze(2) - self.means.unsqueeze(1)) / scales  # [B, n, k, d]
        log_density = -0.5 * standardised.square() - scales.log() - 0.5 * math.log(2 * math.pi)
        return self.log_proportions.unsqueeze(1) + log_density.sum(dim=3)

    def log_likelihood(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, " B"]:
        """Return the mean of log p(x_i) over the elements of each set."""
        return self.log_joint(X).logsumexp(dim=2).mean(dim=1)


def draw_mixtures(sets: int, generator: torch.Generator) -> GaussianMixtures:
    """Draw mixtures in the plane as in the paper: mu ~ U[-4, 4]^2, sigma = 0.3, pi ~ Dirichlet(1, ..., 1)."""
    # Exponential variables divided by their sum are Dirichlet(1, ..., 1); torch's own sampler takes no generator.
    weights = torch.empty(sets, COMPONENTS).exponential_(generator=generator)
    means = (2 * torch.rand(sets, COMPONENTS, DIMENSIONS, generator=generator) - 1) * SPREAD
    return GaussianMixtures((weights / weights.sum(dim=1, keepdim=True)).log(), means, torch.full_like(means, SIGMA))


def draw_elements(mixture: GaussianMixtures, size: int, generator: torch.Generator) -> Float[Tensor, "B n d"]:
    """Draw n = `size` elements from each mixture."""
    labels = torch.multinomial(mixture.log_proportions.exp(), size, replacement=True, generator=generator)
    rows = labels.unsqueeze(2).expand(-1, -1, mixture.means.shape[2])
    noise = torch.randn(rows.shape, generator=generator)
    return mixture.means.gather(1, rows) + mixture.scales.gather(1, rows) * noise


def em_step(X: Float[Tensor, "B n d"], mixture: GaussianMixtures) -> GaussianMixtures:
    """Return the mixtures after one step of expectation maximisation. LEAST_SCALE^2 is added to every variance."""
    shares = mixture.log_joint(X).softmax(dim=2)  # p(component j | x_i), [B, n, k]
    sizes = shares.sum(dim=1)[:, :, None].clamp(min=1e-6)
    means, squares = (shares.transpose(1, 2) @ values / sizes for values in (X, X.square()))
    variances = (squares - means.square()).clamp(min=0) + LEAST_SCALE**2
    return GaussianMixtures((sizes[:, :, 0] / X.shape[1]).log(), means, variances.sqrt())


LEAST_SIZE, MOST_SIZE = 100, 500
COMPONENT_OUTPUTS = 1 + 2 * DIMENSIONS
"""Outputs for each component: the logit of its proportion, its mean, and its scales before softplus."""
BATCH_SETS = 10
"""Number of sets in a test batch. All have the same size."""
TEST_BATCHES, TEST_SEED = 100, 0x6D06
EQUIVARIANT_LAYERS = 4


class Clustering(SetProblem):
    """Predict the mixture from which a set was drawn.

    Models follow table 4 of the paper's supplement, at width 128:

    - The encoder rFF is FC(128, ReLU) x 3, FC(128), and rFFp has four equivariant layers. SAB and ISAB16 are
      SAB(128, 4 heads) x 2 and ISAB_16(128, 4 heads) x 2.
    - After mean or max pooling, the head is FC(128, ReLU) x 3, FC(20).
    - PMA4 is PMA_4(128, 4 heads), SAB(128, 4 heads), and one FC(5), which maps each of the four vectors to a component.

    Two details follow the authors' code. In the table, rFF has a ReLU after the fourth FC, and PMA is followed by
    FC(20). The table has no row for rFFp, so the number of equivariant layers is our choice.
    """

    name = "clustering"
    title = "Amortised clustering of mixtures of Gaussians"
    metrics = (Metric("LL0", higher_is_better=True), Metric("LL1", higher_is_better=True))
    rows = (
        "rFF + mean",
        "rFFp-mean + mean",
        "rFFp-max + max",
        "SAB + mean",
        "ISAB16 + mean",
        "rFF + PMA4",
        "SAB + PMA4",
        "ISAB16 + PMA4",
    )
    largest = MOST_SIZE

    def build(self, row: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return the model of a row, which maps [B, n, 2] to [B, 4 * 5], the input of `mixture_of`."""
        encoder, pooling = parts_of(row)
        if encoder == "rffp" and pooling in ("mean", "max"):
            return seeded(seed, lambda: equivariant_model("mean" if pooling == "mean" else "max", options))
        head = head_of_seeds if pooling == f"pma{COMPONENTS}" else lambda width: head_of_one(width, options.dim)
        network = row_model(row, DIMENSIONS, options, seed, head)
        if encoder == "rffp":
            network.encoder = seeded(seed, lambda: Encoder(positioned_layers("max", options)), ENCODER)
        return network

    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        """Draw sets of one random size. Their targets are the mixtures."""
        size = int(torch.randint(LEAST_SIZE, MOST_SIZE + 1, (), generator=generator))
        truth = draw_mixtures(count, generator)
        return SetBatch(draw_elements(truth, size, generator), target=vars(truth))

    def test_sets(self) -> Sequence[SetBatch]:
        """Return 1,000 sets in 100 batches. The sets of a batch have the same size."""
        return [self.draw(BATCH_SETS, epoch_generator(TEST_SEED, batch)) for batch in range(TEST_BATCHES)]

    def loss(self, output: Tensor, batch: SetBatch) -> Float[Tensor, ""]:
        """Return -LL0."""
        return -mixture_of(output).log_likelihood(batch.X).mean()

    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Return the means of LL0 and LL1 over the sets."""
        predicted = [mixture_of(output) for output in outputs]
        after = [em_step(batch.X, mixture) for mixture, batch in zip(predicted, batches, strict=True)]
        return {"LL0": mean_log_likelihood(predicted, batches), "LL1": mean_log_likelihood(after, batches)}


def head_of_one(width: int, dim: int) -> nn.Module:
    """Return the head that maps one pooled vector to all components."""
    return fully_connected(width, dim, dim, dim, COMPONENTS * COMPONENT_OUTPUTS)


def head_of_seeds(width: int) -> nn.Module:
    """Return the head for the concatenated PMA outputs. Each output predicts one component."""
    rows = nn.Unflatten(1, (COMPONENTS, width // COMPONENTS))
    return nn.Sequential(rows, nn.Linear(width // COMPONENTS, COMPONENT_OUTPUTS), nn.Flatten())


class PositionedEquivariantLayer(nn.Module):
    """y_i = ReLU(Gamma(x_i) - Lambda(pool_j x_j)). Gamma is linear with a bias, and Lambda linear without a bias.

    This is sigma(lambda x + gamma pool({x_1, ..., x_n})) of arXiv 1810.00825, eq. 2, with matrices in place of numbers
    as in Deep Sets (arXiv 1703.06114, section 3.1). In `pointset.nn.EquivariantLayer`, the layer of the point-cloud
    experiments in Deep Sets, Gamma is Lambda. The output of that layer is invariant to translations of the set, so
    later layers could not predict the positions of clusters.
    """

    def __init__(self, dim_in: int, dim: int, statistic: Statistic = "max") -> None:
        super().__init__()
        self.statistic = STATISTICS[statistic]
        self.gamma = nn.Linear(dim_in, dim)
        self.lambda_ = nn.Linear(dim_in, dim, bias=False)

    def forward(self, X: Float[Tensor, "B n d_in"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B n d"]:
        """Return the rows y, in the order of X. `mask` is True at real elements."""
        return (self.gamma(X) - self.lambda_(self.statistic(X, mask))).relu()


def positioned_layers(statistic: Statistic, options: ModelOptions) -> list[nn.Module]:
    """Return the encoder rFFp of this task. The zoo's rFFp is invariant to translations of the set."""
    widths = [DIMENSIONS, *[options.dim] * (options.layers or EQUIVARIANT_LAYERS)]
    return [PositionedEquivariantLayer(*pair, statistic) for pair in itertools.pairwise(widths)]


def equivariant_model(statistic: Statistic, options: ModelOptions) -> SetClassifier:
    """Return the rFFp model whose layers and pooling use the same statistic, "mean" or "max"."""
    encoder = positioned_layers(statistic, options)
    head = nn.Sequential(nn.Flatten(), Dropout(options.dropout_rate), head_of_one(options.dim, options.dim))
    return SetClassifier(encoder, MeanPool() if statistic == "mean" else MaxPool(), head, DIMENSIONS)


def mixture_of(output: Float[Tensor, "B numbers"]) -> GaussianMixtures:
    """Return the mixtures that a model's output describes."""
    return GaussianMixtures.from_output(output.unflatten(1, (COMPONENTS, COMPONENT_OUTPUTS)))


def mean_log_likelihood(mixtures: Sequence[GaussianMixtures], batches: Sequence[SetBatch]) -> float:
    """Return the mean log-likelihood per datum over all sets of all batches."""
    each = [mixture.log_likelihood(batch.X) for mixture, batch in zip(mixtures, batches, strict=True)]
    return torch.cat(each).double().mean().item()
