"""EM: against scikit-learn, against a step by hand, and its general properties."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pointset.tasks.mixtures import LEAST_SCALE, Mixture, draw_elements, draw_mixtures, em_step, fit_by_em

SETS, SIZE, COMPONENTS, WIDTH = 3, 40, 4, 2


def case(seed: int = 0) -> tuple[Tensor, Mixture]:
    """Sets of three clusters, and a start that fits them badly."""
    generator = torch.Generator().manual_seed(seed)
    X, _ = draw_elements(draw_mixtures(SETS, generator, components=3), SIZE, generator)
    means = X[:, :COMPONENTS] + torch.randn(SETS, COMPONENTS, WIDTH, generator=generator)
    scales = 0.5 + torch.rand(SETS, COMPONENTS, WIDTH, generator=generator)
    logits = torch.randn(SETS, COMPONENTS, generator=generator)
    return X.double(), Mixture(logits.double().log_softmax(dim=1), means.double(), scales.double())


def sklearn_em(X: Tensor, start: Mixture, b: int, steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    reference = GaussianMixture(
        COMPONENTS,
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
    for b in range(SETS):
        weights, means, variances, score = sklearn_em(X, start, b, steps=1)
        np.testing.assert_allclose(found.log_proportions[b].exp(), weights, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.means[b], means, rtol=1e-9)
        # sklearn takes E[x^2] - mu^2, which loses digits that we keep.
        np.testing.assert_allclose(found.scales[b].square(), variances, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(found.log_likelihood(X)[b], score, rtol=1e-9)


@pytest.mark.slow
@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10_000))
def test_no_step_lowers_the_likelihood(seed):
    X, mixture = case(seed)
    for _ in range(15):
        after = em_step(X, mixture)
        # A step need not be the best one if a scale is held up by its least value.
        free = (after.scales > LEAST_SCALE).all(dim=2).all(dim=1)
        gains = (after.log_likelihood(X) - mixture.log_likelihood(X))[free]
        assert not len(gains) or gains.min() > -1e-9
        mixture = after


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


def test_em_from_the_truth_gains_as_much_as_fitting_its_parameters():
    """Twice the gain over all data is chi-squared with 19 degrees of freedom, for 4 * 5 - 1 fitted numbers (Wilks)."""
    generator = torch.Generator().manual_seed(0)
    # Far apart and of one size, so that the theorem's conditions hold.
    means = torch.tensor([[-3.0, -3.0], [3.0, -3.0], [-3.0, 3.0], [3.0, 3.0]]).expand(200, 4, 2)
    truth = Mixture(torch.full((200, 4), 0.25).log(), means, torch.full((200, 4, 2), 0.3))
    X, _ = draw_elements(truth, 400, generator)
    gain = 2 * 400 * (fit_by_em(X, truth).log_likelihood(X) - truth.log_likelihood(X))
    assert gain.mean().item() == pytest.approx(19, abs=5 * (2 * 19 / 200) ** 0.5)
