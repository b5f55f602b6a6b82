"""The check must catch what it is there to catch."""

import torch
from torch import Tensor, nn

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
