"""Mixtures of Gaussians with diagonal covariances, as data: densities, draws, and a step of EM.

    p(x) = sum_j pi_j N(x; mu_j, diag(sigma_j^2))                           arXiv 1810.00825, section 5.3

Letters: B sets, n elements in each, d numbers per element, k components.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

COMPONENTS = 4
DIMENSIONS = 2
SPREAD = 4.0
"""Means are uniform in [-SPREAD, SPREAD] in each dimension."""
SIGMA = 0.3
"""Standard deviation of every drawn component, in each dimension."""
LEAST_SCALE = 1e-3
"""The smallest scale, of a model or of EM: a component that shrinks onto one element has an unbounded likelihood.
A three-hundredth of SIGMA: a wrong scale of this size costs a model far more than it gains."""


@dataclass(frozen=True)
class GaussianMixtures:
    """One mixture per set; the order of its components has no meaning."""

    log_proportions: Float[Tensor, "B k"]
    """log pi; the proportions of a set sum to 1."""
    means: Float[Tensor, "B k d"]
    """mu, the means."""
    scales: Float[Tensor, "B k d"]
    """sigma, the standard deviations, above 0."""

    @classmethod
    def from_output(cls, output: Tensor) -> "GaussianMixtures":
        """Read a model's output, [B, k, 1 + 2 d]: of each component a logit, d means, and d scales before softplus."""
        d = output.shape[2] // 2
        logits, means, raw = output.split([1, d, d], dim=2)
        return cls(logits.squeeze(2).log_softmax(dim=1), means, F.softplus(raw) + LEAST_SCALE)

    def log_joint(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B n k"]:
        """log(pi_j N(x_i; mu_j, sigma_j)) of every element i and component j."""
        scales = self.scales.unsqueeze(1)
        standardised = (X.unsqueeze(2) - self.means.unsqueeze(1)) / scales  # [B, n, k, d]
        log_density = -0.5 * standardised.square() - scales.log() - 0.5 * math.log(2 * math.pi)
        return self.log_proportions.unsqueeze(1) + log_density.sum(dim=3)

    def log_likelihood(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, " B"]:
        """The mean of log p(x_i) over the elements of each set."""
        return self.log_joint(X).logsumexp(dim=2).mean(dim=1)


def draw_mixtures(sets: int, generator: torch.Generator, components: int = COMPONENTS) -> GaussianMixtures:
    """Mixtures in the plane as the paper draws them: mu ~ U[-4, 4]^2, sigma = 0.3, pi ~ Dirichlet(1, ..., 1)."""
    # Exponential variables over their sum are Dirichlet(1, ..., 1); torch's own sampler takes no generator.
    weights = torch.empty(sets, components).exponential_(generator=generator)
    means = (2 * torch.rand(sets, components, DIMENSIONS, generator=generator) - 1) * SPREAD
    return GaussianMixtures((weights / weights.sum(dim=1, keepdim=True)).log(), means, torch.full_like(means, SIGMA))


def draw_elements(mixture: GaussianMixtures, size: int, generator: torch.Generator) -> Float[Tensor, "B n d"]:
    """Draw n = `size` elements of each mixture."""
    labels = torch.multinomial(mixture.log_proportions.exp(), size, replacement=True, generator=generator)
    rows = labels.unsqueeze(2).expand(-1, -1, mixture.means.shape[2])
    noise = torch.randn(rows.shape, generator=generator)
    return mixture.means.gather(1, rows) + mixture.scales.gather(1, rows) * noise


def em_step(X: Float[Tensor, "B n d"], mixture: GaussianMixtures) -> GaussianMixtures:
    """One step of expectation maximisation for each set; LEAST_SCALE^2 is added to every variance."""
    shares = mixture.log_joint(X).softmax(dim=2)  # p(component j | x_i), [B, n, k]
    sizes = shares.sum(dim=1)[:, :, None].clamp(min=1e-6)
    means, squares = (shares.transpose(1, 2) @ values / sizes for values in (X, X.square()))
    variances = (squares - means.square()).clamp(min=0) + LEAST_SCALE**2
    return GaussianMixtures((sizes[:, :, 0] / X.shape[1]).log(), means, variances.sqrt())
