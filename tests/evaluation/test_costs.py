"""Costs of models: multiply-adds against counts by hand, memory against tensors of known size, times."""

import copy
import time

import pytest
import torch
from memory import step_memory
from torch import Tensor, nn
from toy import same_weights

import pointset
from pointset.configuration import AttentionOptions
from pointset.evaluation.costs import flops, latency_ms, measure_costs, multiply_adds
from pointset.nn.blocks import ISAB, PMA, SAB
from pointset.nn.fast import kernels, writing
from pointset.nn.fast.kernels import FEW_KEYS

DIM, HEADS, CLASSES = 8, 2, 5
HEAD = DIM * DIM + DIM * CLASSES
"""Of the decoder after max: FC, ReLU, FC."""


def model(name: str, **options) -> nn.Module:
    return pointset.create_model(name, classes=CLASSES, **{"dim": DIM, "heads": HEADS, **options})


@pytest.mark.parametrize("n", [40, FEW_KEYS + 26], ids=["explicit attention", "fused attention"])
def test_multiply_adds_of_self_attention(n):
    """One block in form "paper": embedding, Q K V and output, logits and reading, two layers of rows."""
    rows = 3 * DIM + 4 * DIM * DIM + 2 * DIM * DIM
    attention = 2 * n * n * DIM
    assert multiply_adds(model("sab-max", form="paper", layers=1), n) == n * rows + attention + HEAD


def test_a_recurrent_layer_is_counted():
    """Set2Set after row-wise layers: each step has four gates from an input of 2 d and a state of d, nothing else."""
    n = 6
    steps = 3  # of torch-geometric's Set2Set as the zoo makes it
    gates = steps * 4 * DIM * (2 * DIM + DIM)
    head = 2 * DIM * DIM + DIM * CLASSES
    assert multiply_adds(model("rff-aggr.set2set"), n) == n * (3 * DIM + 3 * DIM * DIM) + gates + head


def test_distances_between_rows_are_counted():
    """DGCNN looks for 20 neighbours in 3, 64, 64 and 128 columns; all else is linear in the rows from 20 up."""
    by_size = [multiply_adds(model("dgcnn"), n) for n in (30, 40, 50)]
    assert by_size[2] - 2 * by_size[1] + by_size[0] == 2 * 10 * 10 * (3 + 64 + 64 + 128)


def test_counting_changes_nothing():
    def settings() -> tuple:
        return torch.backends.mha.get_fastpath_enabled(), torch.backends.mkldnn.enabled, torch.get_num_threads()

    counted, state, before = model("isab4-pma").train(), torch.random.get_rng_state(), settings()
    copied = copy.deepcopy(counted)
    measure_costs([counted], 11, repeats=1, threads=1 if torch.get_num_threads() > 1 else 2)
    assert counted.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in counted.parameters())
    assert same_weights(counted, copied)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert settings() == before


class Hungry(nn.Module):
    """Two temporaries of 40,000 and 80,000 floats at the same time, another one afterwards, and views."""

    inputs = 3

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, CLASSES)

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        first, second = torch.zeros(40_000), torch.zeros(80_000)
        views = [second[10:].view(-1, 2).T, first.unflatten(0, (4, -1))]
        del first, second, views
        torch.zeros(90_000)
        return self.head(points.mean(dim=1))


def test_memory_is_the_peak_of_simultaneous_tensors():
    """480,000 bytes at the peak, not 840,000; little else: points and logits of 2 sets."""
    assert 480_000 <= step_memory(Hungry(), points=10, batch_size=2) < 485_000


def test_the_latency_is_that_of_the_model():
    class Slow(Hungry):
        def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
            assert points.shape == (1, 6, 3)
            assert not self.training
            time.sleep(0.02)
            return super().forward(points)

    assert latency_ms(Slow(), 6) >= 20


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu_counts_are_the_same():
    on_cpu, on_gpu = model("sab-max"), model("sab-max").cuda()
    assert multiply_adds(on_gpu, 100) == multiply_adds(on_cpu, 100)
    assert step_memory(on_gpu, 100, 8) > 4 * sum(parameter.numel() for parameter in on_gpu.parameters())
    assert latency_ms(on_gpu, 100) > 0


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


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize("name", FORMULAS)
def test_a_block_makes_the_products_of_its_formula_and_thrice_as_many_in_training(name, tiled, monkeypatch):
    """Each product has two in the backward pass; the tiled way also recomputes queries that it does not keep."""
    for module in (kernels, writing):
        monkeypatch.setattr(module, "may_tile", module.may_tile if tiled else lambda *_: False)
    block, once, each = FORMULAS[name]
    X = torch.randn(LONG, N, D, generator=torch.Generator().manual_seed(0)).requires_grad_()
    with torch.no_grad():
        assert flops(lambda: block(X)) == 2 * (once + LONG * each)
    made = flops(lambda: block(X).sum().backward()) / 2
    made_up = LONG * (H * N * M**2 + M**2 * D) if name == "ISAB" else 0
    assert 2.95 * (once + LONG * each) <= made <= 3 * (once + LONG * each) + made_up
