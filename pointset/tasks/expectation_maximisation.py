"""Expectation maximisation for mixtures of Gaussians with diagonal covariances, for a batch of sets.

    r_ij = p(component j | x_i)                                             E step
    n_j = sum_i r_ij;   pi_j = n_j / n;   mu_j = sum_i r_ij x_i / n_j;      M step
    sigma_j^2 = sum_i r_ij (x_i - mu_j)^2 / n_j, at least LEAST_SCALE^2

Dempster, Laird and Rubin (1977). No step decreases the likelihood unless a scale is at its lower limit.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from pointset.errors import PointsetError
from pointset.evaluation.mixtures import LEAST_SCALE, Mixture, log_likelihood, responsibilities
from pointset.nn.masks import zero_padding


@dataclass(frozen=True)
class Fit:
    """The result of EM."""

    mixture: Mixture
    trace: Float[Tensor, "rows B"]
    """Log-likelihood per datum of each set, at the start and after each step."""
    converged: bool
    """Whether the last step gained less than the tolerance in every set."""


def em_step(
    X: Float[Tensor, "B n d"],
    mixture: Mixture,
    mask: Bool[Tensor, "B n"] | None = None,
    least_scale: float = LEAST_SCALE,
) -> Mixture:
    """One step of EM from a mixture.

    A component without elements (up to rounding) keeps its mean and its scale, and gets a proportion of nearly 0, so
    that its logarithm is finite. An empty set keeps its mixture.
    """
    X, r = zero_padding(X, mask), responsibilities(X, mixture, mask)
    members = r.sum(dim=1)  # [B, k]
    count = members.sum(dim=1, keepdim=True)
    tiny = torch.finfo(X.dtype).tiny
    per_component = members.clamp(min=tiny).unsqueeze(2)
    means = r.transpose(1, 2) @ X / per_component
    squares = (X.unsqueeze(2) - means.unsqueeze(1)).square()  # [B, n, k, d]
    variances = (r.unsqueeze(3) * squares).sum(dim=1) / per_component
    scales = variances.clamp(min=least_scale**2).sqrt()
    log_proportions = (members / count.clamp(min=1)).clamp(min=tiny).log()
    lives = (members > tiny).unsqueeze(2)
    return Mixture(
        torch.where(count > 0, log_proportions, mixture.log_proportions),
        torch.where(lives, means, mixture.means),
        torch.where(lives, scales, mixture.scales),
    )


def fit_by_em(
    X: Float[Tensor, "B n d"],
    start: Mixture,
    mask: Bool[Tensor, "B n"] | None = None,
    *,
    steps: int = 100,
    tolerance: float = 1e-5,
    least_scale: float = LEAST_SCALE,
) -> Fit:
    """Run EM until a step gains less than `tolerance` per datum in every set, or for at most `steps` steps.

    If it starts from the mixtures from which the data were drawn, its result shows the likelihood that can be reached.

    Raises:
        PointsetError: `steps` is negative.
    """
    if steps < 0:
        raise PointsetError(f"steps must be at least 0, got {steps}")
    mixture, trace, converged = start, [log_likelihood(X, start, mask)], False
    while len(trace) <= steps and not converged:
        mixture = em_step(X, mixture, mask, least_scale)
        trace.append(log_likelihood(X, mixture, mask))
        converged = bool((trace[-1] - trace[-2] < tolerance).all())
    return Fit(mixture, torch.stack(trace), converged)
