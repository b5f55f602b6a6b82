"""Mixtures: densities against scipy's, draws against their parameters, and EM against scikit-learn's."""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from torch import Tensor

from pointset.tasks.clustering import LEAST_SCALE, Mixture, draw_elements, draw_mixtures, em_step, fit_by_em

SETS, SIZE, COMPONENTS, WIDTH = 2, 7, 3, 5


def random_mixture(seed: int = 0) -> Mixture:
    generator = torch.Generator().manual_seed(seed)
    output = torch.randn(SETS, COMPONENTS, 1 + 2 * WIDTH, generator=generator, dtype=torch.float64)
    return Mixture.from_output(output)


def random_sets(seed: int = 1) -> Tensor:
    return torch.randn(SETS, SIZE, WIDTH, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def scipy_joint(X: Tensor, mixture: Mixture) -> np.ndarray:
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
    found = Mixture.from_output(output)
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
    np.testing.assert_allclose(mixture.responsibilities(X), np.exp(joint - each[..., None]), rtol=1e-9)
    assert mixture.log_joint(X).argmax(dim=2).tolist() == joint.argmax(axis=2).tolist()


def test_gradients_are_finite_where_a_scale_is_as_small_as_it_gets():
    output = torch.tensor([[[0.0, 3.0, 3.0, -300.0, -300.0], [0.0, 0.0, 0.0, 0.0, 0.0]]], requires_grad=True)
    Mixture.from_output(output).log_likelihood(torch.zeros(1, 3, 2)).sum().backward()
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
    X, labels = draw_elements(mixture, 5000, generator)
    assert (X.shape, labels.shape) == ((3, 5000, 2), (3, 5000))
    for b in range(3):
        for j in range(4):
            own = X[b, labels[b] == j]
            assert len(own) / 5000 == pytest.approx(mixture.log_proportions[b, j].exp().item(), abs=0.03)
            if len(own) > 100:
                error = 5 * 0.3 / len(own) ** 0.5
                assert own.mean(dim=0).tolist() == pytest.approx(mixture.means[b, j].tolist(), abs=error)
                assert own.std(dim=0).tolist() == pytest.approx([0.3, 0.3], abs=error)


def case(seed: int = 0) -> tuple[Tensor, Mixture]:
    """Three sets of 40 elements in three clusters, and a start of four components that fits them badly."""
    generator = torch.Generator().manual_seed(seed)
    X, _ = draw_elements(draw_mixtures(3, generator, components=3), 40, generator)
    means = X[:, :4] + torch.randn(3, 4, 2, generator=generator)
    scales = 0.5 + torch.rand(3, 4, 2, generator=generator)
    logits = torch.randn(3, 4, generator=generator)
    return X.double(), Mixture(logits.double().log_softmax(dim=1), means.double(), scales.double())


def sklearn_em(X: Tensor, start: Mixture, b: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    reference = GaussianMixture(
        4,
        covariance_type="diag",
        reg_covar=0.0,
        max_iter=steps,
        tol=0.0,
        weights_init=start.log_proportions[b].exp().numpy(),
        means_init=start.means[b].numpy(),
        precisions_init=1 / start.scales[b].square().numpy(),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reference.fit(X[b].numpy())
    return reference.weights_, reference.means_, reference.covariances_, reference.score(X[b].numpy())


def test_one_step_is_that_of_sklearn():
    X, start = case()
    found = em_step(X, start)
    for b in range(3):
        weights, means, variances, score = sklearn_em(X, start, b, steps=1)
        np.testing.assert_allclose(found.log_proportions[b].exp(), weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.means[b], means, rtol=1e-9)
        # sklearn takes E[x^2] - mu^2, which loses digits that we keep.
        np.testing.assert_allclose(found.scales[b].square(), variances, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.log_likelihood(X)[b], score, rtol=1e-9)


def test_em_stops_when_it_has_converged():
    X, start = case()
    assert fit_by_em(X, start, steps=0) is start
    found = fit_by_em(X, start, steps=500)
    further = em_step(X, found).log_likelihood(X) - found.log_likelihood(X)
    assert further.max() < 1e-5
    assert found.log_likelihood(X).min() > start.log_likelihood(X).min()


def test_a_component_without_elements_stays_where_it_is_with_proportion_zero():
    X = torch.randn(1, 20, 2, generator=torch.Generator().manual_seed(0))
    means = torch.tensor([[[0.0, 0.0], [1e4, 1e4]]])
    start = Mixture(torch.tensor([[0.5, 0.5]]).log(), means, torch.ones(1, 2, 2))
    found = em_step(X, start)
    assert found.log_proportions.exp().tolist() == [pytest.approx([1.0, 0.0])]
    assert found.log_proportions.isfinite().all()
    assert found.means[0, 1].tolist() == [1e4, 1e4]
    assert found.scales[0, 1].tolist() == [1.0, 1.0]
    assert fit_by_em(X, start).log_likelihood(X).isfinite().all()
