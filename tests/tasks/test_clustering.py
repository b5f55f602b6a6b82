"""The clustering task: models of the paper's table, sets, and metrics."""

import itertools

import pytest
import torch

from pointset.evaluation.symmetry import check_symmetry
from pointset.tasks.clustering import (
    LEAST_SCALE,
    Clustering,
    Mixture,
    PositionedEquivariantLayer,
    em_step,
    mean_log_likelihood,
    mixture_of,
    oracle_metrics,
    truth_of,
)
from pointset.zoo.options import ModelOptions

TASK = Clustering()
PAPER = ModelOptions(dim=128, heads=4, dropout=0.0)
SMALL = ModelOptions(dim=8, heads=2, dropout=0.0)


def fc(*widths: int) -> int:
    """The number of parameters of linear layers with biases."""
    return sum((before + 1) * after for before, after in itertools.pairwise(widths))


def mab(dim_query: int, dim_key: int, dim: int) -> int:
    """The number of parameters of a MAB in the released code: Q, K, V and one layer after them."""
    return fc(dim_query, dim) + 2 * fc(dim_key, dim) + fc(dim, dim)


def isab(dim_in: int, dim: int, m: int) -> int:
    return m * dim + mab(dim, dim_in, dim) + mab(dim_in, dim, dim)


D = 128
ENCODERS = {
    "rFF": fc(2, D, D, D, D),
    "rFFp-mean": fc(2, D, D, D, D) + 2 * D + 3 * D * D,
    "rFFp-max": fc(2, D, D, D, D) + 2 * D + 3 * D * D,
    "SAB": mab(2, 2, D) + mab(D, D, D),
    "ISAB16": isab(2, D, 16) + isab(D, D, 16),
}
DECODERS = {
    "mean": fc(D, D, D, D, 20),
    "max": fc(D, D, D, D, 20),
    "PMA4": 4 * D + mab(D, D, D) + mab(D, D, D) + fc(D, 5),
}


@pytest.mark.parametrize("row", TASK.rows)
def test_models_are_those_of_the_papers_table(row):
    encoder, pooling = row.split(" + ")
    model = TASK.build(row, PAPER, seed=0)
    assert sum(parameter.numel() for parameter in model.parameters()) == ENCODERS[encoder] + DECODERS[pooling]


def test_equivariant_layers_see_where_a_set_is():
    layer = PositionedEquivariantLayer(2, 6, "mean").double()
    X = torch.randn(3, 4, 2, dtype=torch.float64)
    expected = (layer.gamma(X) - X.mean(dim=1, keepdim=True) @ layer.lambda_.weight.T).clamp(min=0)
    torch.testing.assert_close(layer(X), expected)
    assert (layer(X + 1.0) - layer(X)).abs().max() > 0.01
    assert check_symmetry(layer, dim=2).worst < 1e-9


def test_a_batch_is_of_one_size_with_its_truth():
    sizes = set()
    for seed in range(40):
        batch = TASK.draw(3, torch.Generator().manual_seed(seed))
        sizes.add(batch.X.shape[1])
        assert batch.X.shape == (3, batch.X.shape[1], 2)
        assert batch.mask is None
        assert {name: tuple(value.shape) for name, value in batch.target.items()} == {
            "log_proportions": (3, 4),
            "means": (3, 4, 2),
            "scales": (3, 4, 2),
            "labels": (3, batch.X.shape[1]),
        }
    assert 100 <= min(sizes) < 150
    assert 450 < max(sizes) <= 500
    assert len(sizes) > 30


def test_test_sets_are_fixed_and_differ_from_the_watched_sets():
    first, second, watched = TASK.test_sets(), TASK.test_sets(), TASK.watched_sets()
    assert len(first) == 100
    assert all(len(batch.X) == 10 for batch in first)
    assert all(torch.equal(a.X, b.X) for a, b in zip(first, second, strict=True))
    assert len(watched) == 10
    assert watched[0].X.shape != first[0].X.shape or not torch.equal(watched[0].X, first[0].X)


def test_the_loss_is_minus_the_first_metric():
    batch = TASK.draw(5, torch.Generator().manual_seed(0))
    output = torch.randn(5, 20, generator=torch.Generator().manual_seed(1))
    found = TASK.score([output], [batch])
    assert TASK.loss(output, batch).item() == pytest.approx(-found["LL0"])
    after = em_step(batch.X, mixture_of(output))
    assert found["LL1"] == pytest.approx(after.log_likelihood(batch.X).mean().item())
    assert found["LL1"] > found["LL0"]


def output_of(mixture: Mixture) -> torch.Tensor:
    """The output of a model that predicts this mixture."""
    raw = (mixture.scales - LEAST_SCALE).expm1().log()  # the inverse of softplus
    return torch.cat([mixture.log_proportions.unsqueeze(2) + 1.5, mixture.means, raw], dim=2).flatten(1)


def test_the_true_mixture_reaches_the_likelihood_of_the_oracle():
    batches = [TASK.draw(count, torch.Generator().manual_seed(count)) for count in (2, 5)]
    found = TASK.score([output_of(truth_of(batch)) for batch in batches], batches)
    oracle = oracle_metrics(batches)
    assert found["LL0"] == pytest.approx(oracle["truth"], abs=1e-4)
    assert found["LL1"] == pytest.approx(oracle["truth, one EM step"], abs=1e-4)
    assert oracle["truth"] < oracle["truth, one EM step"] < oracle["truth, EM"]


@pytest.mark.slow
def test_the_published_oracle_is_the_likelihood_of_the_truth():
    """The published value is -1.4726. EM from the truth is 0.04 higher, many standard errors (of about 0.007) away."""
    batches = TASK.test_sets()
    assert mean_log_likelihood([truth_of(batch) for batch in batches], batches) == pytest.approx(-1.4726, abs=0.02)
    oracle = oracle_metrics(batches[:8])
    assert oracle["truth, EM"] > oracle["truth"] + 0.03
