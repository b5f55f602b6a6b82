"""Blocks say what they cannot take, before torch does."""

import pytest
import torch

from pointset.inputs import InputError
from pointset.nn import ISAB, MAB, PMA, SAB, EquivariantLayer, LayerNorm, MaxPool, Multihead, SetNorm
from pointset.nn.fast.packing import Packed
from pointset.nn.norms import BatchNorm

X = torch.zeros(2, 7, 3)
WRONG_MASK = torch.ones(2, 6, dtype=torch.bool)
MASK = r"mask must be bool \[2, 7\].* got "


@pytest.mark.parametrize("make", [SAB, ISAB, EquivariantLayer, lambda d, _: PMA(d), lambda d, _: SetNorm(d)])
@pytest.mark.parametrize(
    ("width", "rows", "layout", "words"),
    [
        (8, X, None, r"[XZ] must be \[B, n, 8\], got float32 \[2, 7, 3\]"),
        (3, X[0], None, r"[XZ] must be \[B, n, 3\], got float32 \[7, 3\]"),
        (3, X, Packed((7, 7)), r"[XZ] must be \[N, 3\], got float32 \[2, 7, 3\]"),
        (3, X.double(), None, r"[XZ] is float64 \[2, 7, 3\] and the block computes in float32"),
        (3, X, WRONG_MASK, MASK + r"bool \[2, 6\]"),
    ],
)
def test_rows_and_masks_of_other_shapes_are_told(make, width, rows, layout, words):
    block = make(width, 12)
    with pytest.raises(InputError, match=words):
        block(rows, layout)


@pytest.mark.parametrize("block", [MaxPool(), BatchNorm(3), SetNorm(3)])
def test_a_mask_of_another_shape_is_told_by_poolings_and_norms(block):
    with pytest.raises(InputError, match=MASK + r"bool \[2, 6\]"):
        block(X, WRONG_MASK)


@pytest.mark.parametrize("make", [MAB, Multihead])
@pytest.mark.parametrize(
    ("queries", "keys", "words"),
    [
        (torch.zeros(2, 5, 4), X, r"X must be \[B, n, 8\], got float32 \[2, 5, 4\]"),
        (torch.zeros(2, 5, 8), torch.zeros(2, 7, 4), r"Y must be \[B, n, 3\], got float32 \[2, 7, 4\]"),
        (torch.zeros(4, 5, 8), X, r"as many sets.* float32 \[4, 5, 8\] and float32 \[2, 7, 3\]"),
    ],
)
def test_queries_and_keys_that_do_not_fit_are_told_apart(make, queries, keys, words):
    with pytest.raises(InputError, match=words):
        make(8, 3, 12)(queries, keys)


def test_mixed_precision_may_give_other_types():
    block = SAB(3, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert block(X.bfloat16()).shape == (2, 7, 8)
    assert LayerNorm(3)(X).shape == X.shape
