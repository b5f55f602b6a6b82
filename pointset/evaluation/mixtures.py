"""Batches of mixtures of Gaussians with diagonal covariances: drawing them, and likelihoods under them.

    p(x) = sum_j pi_j N(x; mu_j, diag(sigma_j^2))                           arXiv 1810.00825, section 5.3

Letters: B sets, n elements in each, d numbers per element, k components. Masks are True at real elements.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from pointset.errors import PointsetError
from pointset.nn.masks import zero_padding

COMPONENTS = 4
DIMENSIONS = 2
SPREAD = 4.0
"""Means are uniform in [-SPREAD, SPREAD] in each dimension."""
SIGMA = 0.3
"""Of every drawn component, in each dimension."""
LEAST_SCALE = 1e-3
"""The smallest scale, of a model or of EM: a component that shrinks onto one element has an unbounded likelihood.
A three-hundredth of SIGMA: a wrong scale of this size costs a model far more than it gains."""


@dataclass(frozen=True)
class Mixture:
    """One mixture per set. The order of its components means nothing."""

    log_proportions: Float[Tensor, "B k"]
    """log pi; the proportions of a set sum to 1."""
    means: Float[Tensor, "B k d"]
    """mu."""
    scales: Float[Tensor, "B k d"]
    """sigma, positive: standard deviations."""

    @classmethod
    def from_output(cls, output: Tensor) -> "Mixture":
        """Read a model's output, [B, k, 1 + 2 d]: of each component a logit, d means, and d scales before softplus.

        Raises:
            PointsetError: the last axis is not 1 + 2 d.
        """
        if output.dim() != 3 or output.shape[2] < 3 or output.shape[2] % 2 == 0:
            raise PointsetError(
                f"a mixture is read from [B, k, 1 + 2 d], got {list(output.shape)}: give a logit, d means and d scales"
            )
        d = output.shape[2] // 2
        logits, means, raw = output.split([1, d, d], dim=2)
        return cls(logits.squeeze(2).log_softmax(dim=1), means, F.softplus(raw) + LEAST_SCALE)

    def __getitem__(self, sets: slice | Tensor) -> "Mixture":
        """The mixtures of some of the sets."""
        return Mixture(self.log_proportions[sets], self.means[sets], self.scales[sets])


def draw_mixtures(sets: int, generator: torch.Generator, components: int = COMPONENTS) -> Mixture:
    """Mixtures in the plane as the paper draws them: mu ~ U[-4, 4]^2, sigma = 0.3, pi ~ Dirichlet(1, ..., 1)."""
    # Exponential variables over their sum are Dirichlet(1, ..., 1); torch's own sampler takes no generator.
    weights = torch.empty(sets, components).exponential_(generator=generator)
    means = (2 * torch.rand(sets, components, DIMENSIONS, generator=generator) - 1) * SPREAD
    return Mixture((weights / weights.sum(dim=1, keepdim=True)).log(), means, torch.full_like(means, SIGMA))


def draw_elements(
    mixture: Mixture, size: int, generator: torch.Generator
) -> tuple[Float[Tensor, "B n d"], Int[Tensor, "B n"]]:
    """Draw n = `size` elements of each mixture, and from which component each of them came."""
    labels = torch.multinomial(mixture.log_proportions.exp(), size, replacement=True, generator=generator)
    rows = labels.unsqueeze(2).expand(-1, -1, mixture.means.shape[2])
    noise = torch.randn(rows.shape, generator=generator)
    return mixture.means.gather(1, rows) + mixture.scales.gather(1, rows) * noise, labels


def log_joint(X: Float[Tensor, "B n d"], mixture: Mixture) -> Float[Tensor, "B n k"]:
    """log(pi_j N(x_i; mu_j, sigma_j)) of every element i and component j."""
    scales = mixture.scales.unsqueeze(1)
    standardised = (X.unsqueeze(2) - mixture.means.unsqueeze(1)) / scales  # [B, n, k, d]
    log_density = -0.5 * standardised.square() - scales.log() - 0.5 * math.log(2 * math.pi)
    return mixture.log_proportions.unsqueeze(1) + log_density.sum(dim=3)


def log_likelihood(
    X: Float[Tensor, "B n d"], mixture: Mixture, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, " B"]:
    """Mean over the real elements of log p(x_i): the log-likelihood of each set, per datum; 0 for an empty set."""
    each = log_joint(zero_padding(X, mask), mixture).logsumexp(dim=2)
    if mask is None:
        return each.mean(dim=1)
    return each.masked_fill(~mask, 0.0).sum(dim=1) / mask.sum(dim=1).clamp(min=1)


def responsibilities(
    X: Float[Tensor, "B n d"], mixture: Mixture, mask: Bool[Tensor, "B n"] | None = None
) -> Float[Tensor, "B n k"]:
    """p(component j | x_i); rows sum to 1, and to 0 where an element is padding."""
    return zero_padding(log_joint(zero_padding(X, mask), mixture).softmax(dim=2), mask)


def assign(X: Float[Tensor, "B n d"], mixture: Mixture) -> Int[Tensor, "B n"]:
    """The component that most likely made each element."""
    return log_joint(X, mixture).argmax(dim=2)
