"""Mixtures: densities against scipy's, draws against their parameters, and steps of EM."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from pointset.tasks.clustering import LEAST_SCALE, GaussianMixtures, draw_elements, draw_mixtures, em_step

SETS, SIZE, COMPONENTS, WIDTH = 2, 7, 3, 5


def random_mixture(seed: int = 0) -> GaussianMixtures:
    generator = torch.Generator().manual_seed(seed)
    output = torch.randn(SETS, COMPONENTS, 1 + 2 * WIDTH, generator=generator, dtype=torch.float64)
    return GaussianMixtures.from_output(output)


def random_sets(seed: int = 1) -> Tensor:
    return torch.randn(SETS, SIZE, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scipy_joint(X: Tensor, mixture: GaussianMixtures) -> np.ndarray:
    """log(pi_j N(x_i)) [B, n, k]."""
    columns = [
        [
            mixture.log_proportions[b, j].item()
            + multivariate_normal(mixture.means[b, j], np.diag(mixture.scales[b, j].square())).logpdf(X[b])
            for j in range(COMPONENTS)
        ]
        for b in range(SETS)
    ]
    return np.asarray(columns).swapaxes(1, 2)


def test_a_mixture_is_read_from_the_output_of_a_model():
    softplus_of_zero = np.log(2)
    output = torch.tensor([[[0.0, 1.0, 2.0, 0.0, 30.0], [np.log(3.0), -1.0, -2.0, -200.0, 0.0]]])
    found = GaussianMixtures.from_output(output)
    assert found.log_proportions.exp().tolist() == [pytest.approx([0.25, 0.75])]
    assert found.means.tolist() == [[[1.0, 2.0], [-1.0, -2.0]]]
    expected = torch.tensor([[softplus_of_zero, 30.0], [0.0, softplus_of_zero]]) + LEAST_SCALE
    torch.testing.assert_close(found.scales[0], expected, check_dtype=False)
    assert found.scales.min() > 0


def test_densities_are_those_of_scipy():
    X, mixture = random_sets(), random_mixture()
    joint = scipy_joint(X, mixture)
    np.testing.assert_allclose(mixture.log_joint(X), joint, rtol=1e-10)
    each = np.logaddexp.reduce(joint, axis=2)
    np.testing.assert_allclose(mixture.log_likelihood(X), each.mean(axis=1), rtol=1e-10)
    assert mixture.log_joint(X).argmax(dim=2).tolist() == joint.argmax(axis=2).tolist()


def test_gradients_are_finite_where_a_scale_is_as_small_as_it_gets():
    output = torch.tensor([[[0.0, 3.0, 3.0, -300.0, -300.0], [0.0, 0.0, 0.0, 0.0, 0.0]]], requires_grad=True)
    GaussianMixtures.from_output(output).log_likelihood(torch.zeros(1, 3, 2)).sum().backward()
    assert output.grad.isfinite().all()


def test_draws_have_the_distribution_of_the_paper():
    generator = torch.Generator().manual_seed(0)
    mixture = draw_mixtures(4000, generator)
    proportions = mixture.log_proportions.exp()
    assert mixture.means.shape == (4000, 4, 2)
    torch.testing.assert_close(proportions.sum(dim=1), torch.ones(4000))
    # Dirichlet(1, 1, 1, 1): mean 1/4, variance 3/80, and P(pi_1 > t) = (1 - t)^3.
    assert proportions.mean(dim=0).tolist() == pytest.approx([0.25] * 4, abs=0.01)
    assert proportions.var(dim=0).tolist() == pytest.approx([3 / 80] * 4, rel=0.08)
    assert (proportions > 0.5).double().mean(dim=0).tolist() == pytest.approx([0.125] * 4, abs=0.02)
    assert mixture.means.min() >= -4
    assert mixture.means.max() <= 4
    assert mixture.means.mean(dim=(0, 1)).tolist() == pytest.approx([0, 0], abs=0.06)
    assert mixture.means.var(dim=(0, 1)).tolist() == pytest.approx([64 / 12] * 2, rel=0.05)
    torch.testing.assert_close(mixture.scales, torch.full((4000, 4, 2), 0.3))


def test_elements_lie_around_the_mean_of_their_component():
    generator = torch.Generator().manual_seed(0)
    mixture = draw_mixtures(3, generator)
    X = draw_elements(mixture, 5000, generator)
    assert X.shape == (3, 5000, 2)
    p, mu, sigma = mixture.log_proportions.exp()[..., None], mixture.means, mixture.scales
    mean = (p * mu).sum(dim=1)
    variance = (p * (mu.square() + sigma.square())).sum(dim=1) - mean.square()
    assert (X.mean(dim=1) - mean).abs().max() < 5 * variance.max().sqrt() / 5000**0.5
    torch.testing.assert_close(X.var(dim=1), variance, rtol=0.1, atol=0.05)


def test_a_step_of_em_is_scikit_learns():
    generator = torch.Generator().manual_seed(0)
    X = draw_elements(draw_mixtures(3, generator), 60, generator).double()
    means = X[:, :4] + torch.randn(3, 4, 2, generator=generator)
    start = GaussianMixtures(torch.full((3, 4), 0.25).log().double(), means, torch.full((3, 4, 2), 0.8).double())
    found = em_step(X, start)
    for place in range(3):
        theirs = GaussianMixture(
            4,
            covariance_type="diag",
            reg_covar=LEAST_SCALE**2,
            max_iter=1,
            weights_init=np.full(4, 0.25),
            means_init=means[place].numpy(),
            precisions_init=np.full((4, 2), 0.8**-2),
        )
        with pytest.warns(ConvergenceWarning):
            theirs.fit(X[place].numpy())
        np.testing.assert_allclose(found.log_proportions[place].exp(), theirs.weights_, rtol=1e-6)
        np.testing.assert_allclose(found.means[place], theirs.means_, rtol=1e-6)
        np.testing.assert_allclose(found.scales[place], np.sqrt(theirs.covariances_), rtol=1e-6)
    assert (found.log_likelihood(X) > start.log_likelihood(X)).all()
