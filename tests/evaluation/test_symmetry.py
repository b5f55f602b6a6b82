"""The symmetry check detects modules that depend on order or padding."""

import math

import pytest
import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

import pointset
from pointset.errors import PointsetError
from pointset.evaluation.symmetry import check_symmetry
from pointset.nn.blocks import PMA
from pointset.nn.masks import masked_sum


class FirstPoint(nn.Module):
    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        return X[:, 0]


class CountsPadding(nn.Module):
    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        return X.mean(dim=1)


class Shifts(nn.Module):
    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        return X + torch.arange(X.shape[1])[None, :, None]


class Square(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        return X.square()


def test_a_module_that_depends_on_order_is_caught():
    assert check_symmetry(FirstPoint()).permutation > 0.1
    assert check_symmetry(Shifts()).permutation > 0.1


def test_a_module_that_sees_padding_is_caught():
    found = check_symmetry(CountsPadding())
    assert found.kind == "invariant"
    assert found.permutation < 1e-5
    assert found.padding > 0.1
    assert found.worst == found.padding


def test_a_module_without_masks_can_be_checked_and_keeps_its_mode():
    module = Square().train()
    found = check_symmetry(module, mask=False)
    assert (found.kind, found.permutation, found.padding) == ("equivariant", 0.0, None)
    assert module.training


class FirstLargest(nn.Module):
    """The largest first coordinate; it depends on positions only if the first two elements have an equal one."""

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        place = torch.arange(X.shape[1]).to(X) * (X[:, :, 0] == X[:, :1, 0]) * (X[:, :, 0] == X[:, 1:2, 0])
        return (X[:, :, 0] + place).masked_fill(~mask, -torch.inf).amax(dim=1)


class Doubled(nn.Module):
    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        return X.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=1)


class NotATensor(nn.Module):
    def forward(self, X: Tensor) -> list:
        return [X]


def test_dependence_on_the_order_of_equal_rows_is_caught():
    """This module depends on the order of equal rows only, so random sets show no fault."""
    found = check_symmetry(FirstLargest(), sizes=(7, 31))
    assert found.permutation < 1e-6
    assert found.duplicates > 0.1
    assert found.worst == found.duplicates


@pytest.mark.slow
def test_dependence_on_repetition_is_reported_but_not_a_fault():
    found = check_symmetry(Doubled())
    assert found.worst < 1e-5
    assert found.repetition > 0.5
    assert check_symmetry(pointset.create_model("isab4-pma", classes=5, dim=8)).repetition < 1e-5


def test_a_mask_is_given_to_those_who_take_one():
    assert check_symmetry(Square()).padding is None
    assert check_symmetry(Doubled()).padding is not None


def test_the_width_of_a_model_is_its_own():
    assert check_symmetry(pointset.create_model("rff-max", classes=5, dim=8, inputs=6)).worst < 1e-5


def test_what_cannot_be_checked_is_one_clear_sentence():
    with pytest.raises(PointsetError, match=r"NotATensor.*tensor.*list"):
        check_symmetry(NotATensor())
    with pytest.raises(PointsetError, match=r"sizes must be .* got \(0, 3\)"):
        check_symmetry(Square(), sizes=(0, 3))


class Scores(nn.Module):
    """One number for each element, [B, n]."""

    def forward(self, X: Tensor) -> Tensor:
        return X.sum(dim=-1)


class NamedMask(nn.Module):
    def forward(self, X: Tensor, *, mask: Tensor | None = None) -> Tensor:
        return X.mean(dim=1)


class OtherOption(nn.Module):
    def forward(self, X: Tensor, return_weights: bool = False) -> Tensor:
        return X.sum(dim=1) if not return_weights else X


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 2, 7, 31])
def test_as_many_seeds_as_elements_are_not_elements(seeds):
    found = check_symmetry(PMA(8, seeds), dim=8)
    assert found.kind == "invariant"
    assert found.worst < 1e-5
    assert check_symmetry(PMA(8, seeds), dim=8, sizes=(seeds,)).kind == "invariant"


def test_scores_of_elements_are_equivariant_whatever_their_rank():
    found = check_symmetry(Scores())
    assert (found.kind, found.permutation, found.duplicates) == ("equivariant", 0.0, 0.0)
    found = check_symmetry(lambda X: X[..., None] * X[..., None, :])  # [B, n, d, d]
    assert (found.kind, found.permutation) == ("equivariant", 0.0)
    assert check_symmetry(lambda X: X.sum(dim=-1).cumsum(dim=1)).permutation > 0.1


def test_a_shape_that_changes_otherwise_is_refused():
    with pytest.raises(PointsetError, match=r"from \[3, 3\] to \[3, 6\].* one row for each element"):
        check_symmetry(lambda X: X.flatten(1))


def test_a_mask_that_is_given_by_name_alone_is_tested():
    assert check_symmetry(NamedMask()).padding > 0.1
    assert check_symmetry(NamedMask(), mask=False).padding is None


def test_an_option_is_not_a_mask():
    found = check_symmetry(OtherOption())
    assert found.worst < 1e-5
    assert found.padding is None


def test_any_function_can_be_checked():
    assert check_symmetry(lambda X: X.amax(dim=1)).worst == 0.0
    assert check_symmetry(torch.sum).padding is None  # a builtin does not tell its parameters
    assert check_symmetry(lambda X, keep: X.sum(dim=1)).padding > 0.1


def test_a_method_is_checked_in_evaluation_mode_with_the_width_of_its_model():
    model = pointset.create_model("rff-max", classes=5, dim=8, inputs=6, row_dropout=0.5).train()
    found = check_symmetry(model.encode)
    assert found.kind == "equivariant"
    assert found.worst < 1e-5
    assert model.training


def test_a_mask_is_given_to_hidden_parameters_on_request():
    assert check_symmetry(AveragedModel(CountsPadding()), mask=True).padding > 0.1
    assert check_symmetry(lambda *given: given[0].mean(dim=1)).padding is None
    assert check_symmetry(lambda *given: given[0].mean(dim=1), mask=True).padding > 0.1


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (
            lambda X, edges: X[edges.long()[0, 0, 0]],
            {},
            r"<lambda> .* X \[3, 1, 3\] and a mask \[3, 1\].*mask=False",
        ),
        (Square(), {"mask": True}, r"Square cannot be called .* \(TypeError: .*mask=False where it takes no mask"),
        (lambda X, *, other: X, {}, r"X \[3, 1, 3\] alone \(TypeError: .*mask=False"),
        (nn.Linear(4, 2), {}, r"Linear cannot be called with X \[3, 1, 3\] alone .* give dim= the width of its rows"),
    ],
)
def test_what_cannot_be_called_so_is_one_clear_sentence(function, options, words):
    with pytest.raises(PointsetError, match=words):
        check_symmetry(function, **options)


class NotANumberWhenPadded(nn.Module):
    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        total = X.masked_fill(~mask.unsqueeze(-1), 0.0).sum(dim=1)
        return total if mask.all() else total * torch.nan


class NotANumberForEquals(nn.Module):
    def forward(self, X: Tensor) -> Tensor:
        ordered = X.sort(dim=1).values
        return X.amax(dim=1) / ordered.diff(dim=1).ne(0).all(dim=1)  # 0 / 0 or x / 0 where a number occurs twice


class Prefix(nn.Module):
    """Assumes that padding is at the end."""

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        return torch.stack([x[: keep.sum()].mean(dim=0) for x, keep in zip(X, mask, strict=True)])


class NearlyMasked(nn.Module):
    """A softmax that gives padding weight exp(-40) instead of 0."""

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        logits = torch.where(mask, 0.0, -10.0)
        return (logits.softmax(dim=1).unsqueeze(-1) * X.nan_to_num()).sum(dim=1)


class Silenced(nn.Module):
    """Multiplies padding by 0, which removes every number except NaN."""

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        return (X * mask.unsqueeze(-1)).sum(dim=1)


def test_nan_is_not_a_small_deviation():
    found = check_symmetry(NotANumberWhenPadded())
    assert found.permutation < 1e-5
    assert found.padding == found.worst == math.inf
    found = check_symmetry(NotANumberForEquals(), sizes=(7, 31))
    assert found.permutation == 0.0
    assert found.duplicates == found.worst == math.inf


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_output_that_is_not_finite_proves_nothing(value):
    found = check_symmetry(lambda X: X.sum(dim=1) * value)
    assert found.permutation == found.duplicates == found.repetition == math.inf


def test_padding_is_tried_among_the_elements_and_at_the_end():
    assert check_symmetry(Prefix()).padding > 0.1

    def function(X: Tensor, mask: Tensor) -> Tensor:
        at_the_end = mask[:, :-1].ge(mask[:, 1:]).all(dim=1) & ~mask.all(dim=1)
        return masked_sum(X, mask)[:, 0] + at_the_end[:, None]

    assert check_symmetry(function).padding > 0.1


def test_padding_is_tried_with_large_numbers_and_with_nan():
    assert 0.1 < check_symmetry(NearlyMasked()).padding < math.inf
    assert check_symmetry(Silenced()).padding == math.inf


def test_elements_among_padding_keep_their_order_and_their_outputs():
    """Cumulative sums ignore padding, but depend on the order."""
    found = check_symmetry(lambda X, mask: X.masked_fill(~mask.unsqueeze(-1), 0.0).cumsum(dim=1))
    assert found.kind == "equivariant"
    assert found.padding < 1e-6
    assert found.permutation > 0.1


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("sizes", [(1, 2, 7, 31), (2,), (3,), (31,)])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_slight_dependence_on_one_position_is_seen_at_every_size(place, sizes, seed):
    """1e-3 times one element, relative to the sum of n: of order 1e-3 / sqrt(n)."""
    found = check_symmetry(lambda X: X.double().sum(dim=1) + 1e-3 * X[:, place], sizes=sizes, seed=seed)
    assert found.permutation > (5e-4 if 2 in sizes else 1e-3 / max(sizes) ** 0.5)
