"""Batches of mixtures of Gaussians with diagonal covariances: draws, likelihoods, and EM.

    p(x) = sum_j pi_j N(x; mu_j, diag(sigma_j^2))                           arXiv 1810.00825, section 5.3

Letters: B sets, n elements in each, d numbers per element, k components.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

COMPONENTS = 4
DIMENSIONS = 2
SPREAD = 4.0
"""Means are uniform in [-SPREAD, SPREAD] in each dimension."""
SIGMA = 0.3
"""Standard deviation of every drawn component, in each dimension."""
TOLERANCE = 1e-5
"""EM has converged when a step gains less than this per datum."""
LEAST_SCALE = 1e-3
"""The smallest scale, of a model or of EM: a component that shrinks onto one element has an unbounded likelihood.
A three-hundredth of SIGMA: a wrong scale of this size costs a model far more than it gains."""


@dataclass(frozen=True)
class Mixture:
    """One mixture per set; the order of its components has no meaning."""

    log_proportions: Float[Tensor, "B k"]
    """log pi; the proportions of a set sum to 1."""
    means: Float[Tensor, "B k d"]
    """mu, the means."""
    scales: Float[Tensor, "B k d"]
    """sigma, the standard deviations, above 0."""

    @classmethod
    def from_output(cls, output: Tensor) -> "Mixture":
        """Read a model's output, [B, k, 1 + 2 d]: of each component a logit, d means, and d scales before softplus."""
        d = output.shape[2] // 2
        logits, means, raw = output.split([1, d, d], dim=2)
        return cls(logits.squeeze(2).log_softmax(dim=1), means, F.softplus(raw) + LEAST_SCALE)

    def __getitem__(self, sets: slice | Tensor) -> "Mixture":
        """The mixtures of some of the sets."""
        return Mixture(self.log_proportions[sets], self.means[sets], self.scales[sets])

    def log_joint(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B n k"]:
        """log(pi_j N(x_i; mu_j, sigma_j)) of every element i and component j."""
        scales = self.scales.unsqueeze(1)
        standardised = (X.unsqueeze(2) - self.means.unsqueeze(1)) / scales  # [B, n, k, d]
        log_density = -0.5 * standardised.square() - scales.log() - 0.5 * math.log(2 * math.pi)
        return self.log_proportions.unsqueeze(1) + log_density.sum(dim=3)

    def log_likelihood(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, " B"]:
        """The mean of log p(x_i) over the elements of each set."""
        return self.log_joint(X).logsumexp(dim=2).mean(dim=1)

    def responsibilities(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B n k"]:
        """p(component j | x_i); rows sum to 1."""
        return self.log_joint(X).softmax(dim=2)


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


def em_step(X: Float[Tensor, "B n d"], mixture: Mixture) -> Mixture:
    """One step of EM from a mixture with diagonal covariances (Dempster, Laird and Rubin, 1977), for a batch of sets.

        r_ij = p(component j | x_i)                                             E step
        n_j = sum_i r_ij;   pi_j = n_j / n;   mu_j = sum_i r_ij x_i / n_j;      M step
        sigma_j^2 = sum_i r_ij (x_i - mu_j)^2 / n_j, at least LEAST_SCALE^2

    A component without elements (up to rounding) keeps its mean and its scale, and gets a proportion of nearly 0, so
    that its logarithm is finite.
    """
    r = mixture.responsibilities(X)
    members = r.sum(dim=1)  # [B, k]
    tiny = torch.finfo(X.dtype).tiny
    per_component = members.clamp(min=tiny).unsqueeze(2)
    means = r.transpose(1, 2) @ X / per_component
    squares = (X.unsqueeze(2) - means.unsqueeze(1)).square()  # [B, n, k, d]
    variances = (r.unsqueeze(3) * squares).sum(dim=1) / per_component
    scales = variances.clamp(min=LEAST_SCALE**2).sqrt()
    log_proportions = (members / members.sum(dim=1, keepdim=True)).clamp(min=tiny).log()
    lives = (members > tiny).unsqueeze(2)
    return Mixture(
        log_proportions,
        torch.where(lives, means, mixture.means),
        torch.where(lives, scales, mixture.scales),
    )


def fit_by_em(X: Float[Tensor, "B n d"], start: Mixture, steps: int = 100) -> Mixture:
    """Run EM until a step gains less than TOLERANCE per datum in every set, or for at most `steps` steps."""
    mixture, reached = start, start.log_likelihood(X)
    for _ in range(steps):
        mixture = em_step(X, mixture)
        before, reached = reached, mixture.log_likelihood(X)
        if bool((reached - before < TOLERANCE).all()):
            break
    return mixture
