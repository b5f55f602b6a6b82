"""How candidates for a choice are judged on held-out shapes, and multiplied."""

import numpy as np
import pytest
import torch
from statsmodels.stats.proportion import proportion_confint

from pointset.training import candidates
from pointset.training.candidates import ROWS, HeldOut, accuracy_interval, fit_product

LABELS = torch.arange(16) // 8


@pytest.fixture
def held_out():
    return HeldOut(LABELS, np.arange(len(LABELS)), ROWS, 0)


def outputs_of(*, wrong: int = 0, margin: float = 3.0) -> torch.Tensor:
    """Outputs that are right by a margin, but for the first shapes."""
    outputs = margin * torch.eye(2)[LABELS]
    outputs[:wrong] *= -1
    return outputs


@pytest.mark.parametrize(
    ("surface", "network", "best"),
    [(4, 4, "mixture"), (3, 3, "mixture"), (0, 4, "surface-svm"), (4, 0, "network"), (1, 0, "network")],
)
def test_another_candidate_replaces_the_product_if_its_log_loss_is_smaller_by_a_standard_error(
    surface, network, best, held_out
):
    wrong = dict.fromkeys((*ROWS, "mixture"), 4) | {"surface-svm": surface, "network": network}
    held_out.outputs = {name: outputs_of(wrong=count) for name, count in wrong.items()}
    assert held_out.best()[0] == best


def test_a_difference_of_one_group_alone_is_no_reason(held_out):
    held_out.outputs = {name: outputs_of(wrong=4) for name in (*ROWS, "network", "mixture")}
    held_out.outputs["network"] = outputs_of()
    held_out.groups = np.repeat([0, 1], [4, 12])
    assert held_out.best() == ("mixture", "no other log loss is smaller by a standard error")


@pytest.mark.parametrize(("many", "best"), [(16, "network"), (17, "mixture")])
def test_a_network_is_taken_if_neither_is_ever_wrong_on_many_shapes(many, best, held_out, monkeypatch):
    monkeypatch.setattr(candidates, "MANY", many)
    held_out.outputs = {name: outputs_of() for name in (*ROWS, "mixture")}
    held_out.outputs["network"] = outputs_of(margin=2.0)
    assert held_out.best()[0] == best


def test_each_candidate_is_compared_with_the_product_on_the_shapes_of_both(held_out):
    held_out.outputs = {name: outputs_of() for name in (*ROWS, "network", "mixture")}
    held_out.outputs["mixture"][8:10] *= -1
    held_out.outputs["network"][6:] = torch.nan  # on its shapes the mixture is right
    held_out.outputs["network"][0] *= -1
    name, reason = held_out.best()
    assert name == ROWS[0]
    assert reason == "its log loss is smaller than that of the mixture by a standard error"
    held_out.outputs["network"][:] = torch.nan
    assert held_out.best() == (name, reason)


@pytest.mark.parametrize(("rows", "mixed", "joins"), [(3, 3, True), (0, 8, False)])
def test_the_network_joins_the_product_unless_that_raises_the_log_loss(rows, mixed, joins, held_out, monkeypatch):
    products = [outputs_of(wrong=rows), outputs_of(wrong=mixed, margin=2.0)]
    products[1][12:] = torch.nan  # where the network was not judged
    monkeypatch.setattr(held_out, "of_product", iter(products).__next__)
    held_out.outputs["network"] = outputs_of()
    held_out.add_product()
    assert held_out.members == [*ROWS, *["network"] * joins]
    assert held_out.outputs["mixture"][:12].equal(products[int(joins)][:12])
    assert held_out.outputs["mixture"][12:].equal(products[0][12:])


def test_few_shapes_leave_a_network_the_weight_of_one_of_all_members():
    rows = {name: outputs_of(wrong=4) for name in ROWS}
    some, groups = torch.ones(len(LABELS), dtype=torch.bool), np.arange(len(LABELS))
    product = fit_product({**rows, "network": outputs_of()}, LABELS, some, groups)
    assert 0.2 < product.weights[-1] < 0.4  # although it is right where they are wrong
    alone = fit_product(rows, LABELS, some, groups)
    torch.testing.assert_close(product.weights[:-1] / product.weights[0], alone.weights / alone.weights[0])


def test_the_interval_counts_that_fits_share_shapes():
    """A share of 0.8 of 100 shapes varies as the mean of 99 independent shapes, and 2.25 times as much."""
    low, high = accuracy_interval((torch.arange(100) < 80).float(), np.arange(100), trained=80)
    assert (low, high) == pytest.approx(proportion_confint(0.8 * 44, 44, method="wilson"))


def test_the_interval_of_groups_without_errors_is_like_that_of_one_error():
    """Few errors do not tell whether those of one group stand together: the interval must not jump at none."""
    groups = np.arange(128) // 4
    (low, high), (lower, higher) = (accuracy_interval((torch.arange(128) >= n).float(), groups, 102) for n in (0, 1))
    assert high == 1
    assert abs(low - lower) < 0.03
    assert abs(high - higher) < 0.03
