"""The check must catch what it is there to catch."""

import pytest
import torch
from torch import Tensor, nn

import pointset
from pointset.errors import PointsetError
from pointset.symmetry import check_symmetry


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


def test_a_module_without_masks_can_be_checked():
    found = check_symmetry(Square(), mask=False)
    assert (found.kind, found.permutation, found.padding) == ("equivariant", 0.0, None)


def test_the_mode_of_the_module_is_left_alone():
    module = Square().train()
    check_symmetry(module, mask=False)
    assert module.training


class FirstLargest(nn.Module):
    """The row of the largest first coordinate, whose own place is told by its last coordinate when two are equal."""

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        place = torch.arange(X.shape[1]).to(X) * (X[:, :, 0] == X[:, :1, 0]) * (X[:, :, 0] == X[:, 1:2, 0])
        return (X[:, :, 0] + place).masked_fill(~mask, -torch.inf).amax(dim=1)


class Doubled(nn.Module):
    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        return (X * mask.unsqueeze(-1)).sum(dim=1)


class NotATensor(nn.Module):
    def forward(self, X: Tensor) -> list:
        return [X]


def test_duplicates_that_tell_places_are_caught():
    """Two equal rows are the only ones that this module tells apart, so that random sets look fine."""
    found = check_symmetry(FirstLargest(), sizes=(7, 31))
    assert found.permutation < 1e-6
    assert found.duplicates > 0.1
    assert found.worst == found.duplicates


def test_repetition_is_told_and_is_no_fault():
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
    with pytest.raises(PointsetError, match="NotATensor returns a list and no tensor"):
        check_symmetry(NotATensor())
    with pytest.raises(PointsetError, match=r"sizes=\(0, 3\) are no sizes"):
        check_symmetry(Square(), sizes=(0, 3))
