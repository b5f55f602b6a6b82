"""Multiply-adds of the blocks, counted while they run: a block that does more work than its formula fails."""

import pytest
import torch

from pointset.configuration import AttentionOptions
from pointset.evaluation.costs import flops
from pointset.nn.blocks import ISAB, PMA, SAB
from pointset.nn.fast import kernels, writing

N, M, D, H = 300, 6, 32, 4
OPTIONS = AttentionOptions(heads=H)
LONG = 3
"""Sets in a batch."""

FORMULAS = {
    # For each inducing point Q and its fold with W^K; what it reads times W^V, feed-forward, K and V; then the rows.
    "ISAB": (ISAB(D, D, M, OPTIONS), M * 2 * D**2, M * 4 * D**2 + N * (2 * H * M * D + 2 * D**2 + 2 * M * D)),
    "PMA": (PMA(D, M, OPTIONS), M * 2 * D**2, M * 2 * D**2 + N * 2 * H * M * D),
    "SAB": (SAB(D, D, OPTIONS), 0, N * 4 * D**2 + 2 * N * N * D),
}
"""By block: itself, the multiply-adds it makes once for a batch, and those for every set."""


@pytest.fixture(params=["tiled", "plain"])
def order(request, monkeypatch):
    for module in (kernels, writing):
        if request.param == "plain":
            monkeypatch.setattr(module, "may_tile", lambda *_: False)


@pytest.mark.parametrize("name", FORMULAS)
def test_a_block_makes_the_products_of_its_formula_and_thrice_as_many_in_training(name, order):
    """Each product has two in the backward pass; the tiled way also recomputes queries that it does not keep."""
    block, once, each = FORMULAS[name]
    X = torch.randn(LONG, N, D, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with torch.no_grad():
        assert flops(lambda: block(X)) == 2 * (once + LONG * each)
    made = flops(lambda: block(X).sum().backward()) / 2
    made_up = LONG * (H * N * M**2 + M**2 * D) if name == "ISAB" else 0
    assert 2.95 * (once + LONG * each) <= made <= 3 * (once + LONG * each) + made_up
