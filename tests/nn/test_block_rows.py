"""Blocks check their inputs, and their messages name the wrong argument and its shape."""

import pytest
import torch

from pointset.inputs import InputError
from pointset.nn import ISAB, MAB, PMA, SAB, EquivariantLayer, LayerNorm, Multihead
from pointset.nn.checks import check_rows
from pointset.nn.fast.packing import Packed

X = torch.zeros(2, 7, 4)
MASK = r"mask must be bool \[2, 7\].* got "


@pytest.mark.parametrize("make", [SAB, ISAB, EquivariantLayer, lambda d, _: PMA(d)])
@pytest.mark.parametrize(
    ("width", "rows", "words"),
    [
        (8, X, r"[XZ] must be \[B, n, 8\], got float32 \[2, 7, 4\]"),
        (4, X[0], r"[XZ] must be \[B, n, 4\], got float32 \[7, 4\]"),
        (4, X.double(), r"[XZ] is float64 \[2, 7, 4\] and the block computes in float32"),
    ],
)
def test_the_error_for_wrong_rows_has_their_shape(make, width, rows, words):
    with pytest.raises(InputError, match=words):
        make(width, 12)(rows)


@pytest.mark.parametrize(
    ("rows", "layout", "words"),
    [
        (X, torch.ones(2, 6, dtype=torch.bool), MASK + r"bool \[2, 6\]"),
        (X, torch.ones(2, 7), MASK + r"float32 \[2, 7\]"),
        (X, [True] * 7, MASK + "list"),
        (X, Packed((7, 7)), r"X must be \[N, 4\], got float32 \[2, 7, 4\]"),
        ([[1.0]], None, r"X must be \[B, n, 4\], got list"),
    ],
)
def test_a_mask_that_does_not_fit_the_rows_is_an_error(rows, layout, words):
    """Calls the check itself, because in tests the shape annotations of the blocks raise first."""
    with pytest.raises(InputError, match=words):
        check_rows(rows, layout, torch.zeros(5, 4))


@pytest.mark.parametrize("make", [MAB, Multihead])
@pytest.mark.parametrize(
    ("queries", "keys", "words"),
    [
        (torch.zeros(2, 5, 3), X, r"X must be \[B, n, 8\], got float32 \[2, 5, 3\]"),
        (torch.zeros(2, 5, 8), torch.zeros(2, 7, 3), r"Y must be \[B, n, 4\], got float32 \[2, 7, 3\]"),
        (torch.zeros(4, 5, 8), X, r"the same number of sets.* float32 \[4, 5, 8\] and float32 \[2, 7, 4\]"),
    ],
)
def test_the_error_for_wrong_rows_says_whether_they_are_queries_or_keys(make, queries, keys, words):
    with pytest.raises(InputError, match=words):
        make(8, 4, 12)(queries, keys)


def test_mixed_precision_may_give_other_types():
    block = SAB(4, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert block(X.bfloat16()).shape == (2, 7, 8)
    assert LayerNorm(4)(X).shape == X.shape
