"""Mixtures of Gaussians with diagonal covariances, as data: densities, draws, and EM.

    p(x) = sum_j pi_j N(x; mu_j, diag(sigma_j^2))                           arXiv 1810.00825, section 5.3

Letters: B sets, n elements in each, d numbers per element, k components.
"""

import math
import warnings
from dataclasses import dataclass

import numpy as np
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
EM_TOLERANCE = 1e-5
"""EM has converged when a step gains less than this per datum."""
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


def fit_by_em(X: Float[Tensor, "B n d"], start: GaussianMixtures, steps: int = 100) -> GaussianMixtures:
    """At most so many steps of EM from a mixture, for each set: scikit-learn's, with diagonal covariances.

    It stops when a step gains less than EM_TOLERANCE per datum, and adds LEAST_SCALE^2 to every variance.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    weights, means, scales = [], [], []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for place, elements in enumerate(X.double().numpy()):
            model = GaussianMixture(
                start.means.shape[1],
                covariance_type="diag",
                tol=EM_TOLERANCE,
                reg_covar=LEAST_SCALE**2,
                max_iter=steps,
                weights_init=start.log_proportions[place].double().softmax(dim=0).numpy(),
                means_init=start.means[place].double().numpy(),
                precisions_init=start.scales[place].double().square().reciprocal().numpy(),
            ).fit(elements)
            weights.append(model.weights_)
            means.append(model.means_)
            scales.append(np.sqrt(model.covariances_))
    log_weights = [np.log(own) for own in weights]
    return GaussianMixtures(*(torch.from_numpy(np.stack(own)).to(X.dtype) for own in (log_weights, means, scales)))
