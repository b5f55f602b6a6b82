"""The symmetry check detects modules that depend on order or padding; costs of models are counts by hand."""

import copy
import math
import re
import time

import pytest
import torch
import toy
from timing import step_memory
from torch import Tensor, nn
from toy import same_weights

import pointset
from pointset import ModelOptions, check_symmetry
from pointset.comparison.experiment import Experiment
from pointset.configuration import AttentionOptions
from pointset.evaluation.costs import flops, latency_ms, measure_costs, multiply_adds
from pointset.nn import Pooling, registry
from pointset.nn.blocks import ISAB, PMA, SAB
from pointset.nn.fast import kernels, writing
from pointset.nn.fast.kernels import FEW_KEYS
from pointset.nn.masks import masked_sum
from pointset.tasks import MaxRegression, task_recipe


def masked(X: Tensor, mask: Tensor) -> Tensor:
    return X.masked_fill(~mask.unsqueeze(-1), 0.0)


def first_largest(X: Tensor, mask: Tensor) -> Tensor:
    """The largest first coordinate; it depends on positions only if the first two elements have an equal one."""
    place = torch.arange(X.shape[1]).to(X) * (X[:, :, 0] == X[:, :1, 0]) * (X[:, :, 0] == X[:, 1:2, 0])
    return (X[:, :, 0] + place).masked_fill(~mask, -torch.inf).amax(dim=1)


def assumes_padding_at_the_end(X: Tensor, mask: Tensor) -> Tensor:
    return torch.stack([x[: keep.sum()].mean(dim=0) for x, keep in zip(X, mask, strict=True)])


def sees_padding_at_the_end(X: Tensor, mask: Tensor) -> Tensor:
    at_the_end = mask[:, :-1].ge(mask[:, 1:]).all(dim=1) & ~mask.all(dim=1)
    return masked_sum(X, mask)[:, 0] + at_the_end[:, None]


def nearly_masked(X: Tensor, mask: Tensor) -> Tensor:
    """A softmax that gives padding weight exp(-10) instead of 0."""
    return (torch.where(mask, 0.0, -10.0).softmax(dim=1).unsqueeze(-1) * X.nan_to_num()).sum(dim=1)


@pytest.mark.parametrize(
    ("function", "fault", "least"),
    [
        (lambda X, mask: X[:, 0], "permutation", 0.1),
        (lambda X, mask: X + torch.arange(X.shape[1])[None, :, None], "permutation", 0.1),
        (lambda X, mask: X.sum(dim=-1).cumsum(dim=1), "permutation", 0.1),
        (first_largest, "duplicates", 0.1),
        (lambda X, mask: X.amax(dim=1) / X.sort(dim=1).values.diff(dim=1).ne(0).all(dim=1), "duplicates", math.inf),
        (lambda X, mask: X.mean(dim=1), "padding", 0.1),
        (assumes_padding_at_the_end, "padding", 0.1),
        (sees_padding_at_the_end, "padding", 0.1),
        (nearly_masked, "padding", 0.1),
        (lambda X, mask: (X * mask.unsqueeze(-1)).sum(dim=1), "padding", math.inf),  # 0 times NaN is NaN
    ],
)
def test_every_fault_is_caught(function, fault, least):
    """Where random sets have no equal elements, only the check with duplicates shows a fault."""
    found = check_symmetry(function, sizes=(7, 31) if fault == "duplicates" else (1, 2, 7, 31))
    assert found.worst >= getattr(found, fault) >= least
    if fault != "permutation":
        assert found.permutation < 1e-5


@pytest.mark.parametrize(
    ("function", "kind", "mask"),
    [
        (lambda X: X.amax(dim=1), "invariant", False),
        (lambda X: X.square(), "equivariant", False),
        (lambda X: X.sum(dim=-1), "equivariant", False),
        (lambda X: X[..., None] * X[..., None, :], "equivariant", False),
        (lambda X, mask: masked(X, mask).sum(dim=1), "invariant", True),
    ],
)
def test_functions_of_sets_have_no_fault(function, kind, mask):
    found = check_symmetry(function, mask=mask)
    assert (found.kind, found.padding is not None) == (kind, mask)
    assert found.worst < 1e-5


def test_elements_among_padding_keep_their_order_and_their_outputs():
    """Cumulative sums ignore padding, but depend on the order."""
    found = check_symmetry(lambda X, mask: masked(X, mask).cumsum(dim=1))
    assert found.kind == "equivariant"
    assert found.padding < 1e-6
    assert found.permutation > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [1, 7])
def test_as_many_seeds_as_elements_are_not_elements(seeds):
    found = check_symmetry(PMA(8, seeds), dim=8)
    assert found.kind == "invariant"
    assert found.worst < 1e-5
    assert check_symmetry(PMA(8, seeds), dim=8, sizes=(seeds,)).kind == "invariant"


def test_a_method_is_checked_in_evaluation_mode_with_the_width_of_its_model():
    model = pointset.create_model("sab-max", classes=5, dim=8, inputs=6, attention_dropout=0.5).train()
    found = check_symmetry(model.encode)
    assert found.kind == "equivariant"
    assert found.worst < 1e-5
    assert model.training


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_output_that_is_not_finite_proves_nothing(value):
    found = check_symmetry(lambda X: X.sum(dim=1) * value, mask=False)
    assert found.permutation == found.duplicates == math.inf


@pytest.mark.parametrize("place", [0, -1])
@pytest.mark.parametrize("sizes", [(1, 2, 7, 31), (2,), (3,), (31,)])
def test_a_slight_dependence_on_one_position_is_seen_at_every_size(place, sizes):
    """1e-3 times one element, relative to the sum of n: of order 1e-3 / sqrt(n)."""
    found = check_symmetry(lambda X: X.double().sum(dim=1) + 1e-3 * X[:, place], sizes=sizes, mask=False)
    assert found.permutation > (5e-4 if 2 in sizes else 1e-3 / max(sizes) ** 0.5)


class Careful(Pooling):
    def forward(self, X, mask=None):
        return (X if mask is None else X * mask[..., None]).sum(dim=1)


class FailsLater(Careful):
    def forward(self, X, mask=None):
        if X.shape[0] > 2:
            raise RuntimeError("too many sets")
        return super().forward(X, mask)


def test_a_comparison_says_where_in_ones_own_code_a_run_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "REGISTERED", registry.REGISTERED.copy())
    for module in (Careful, FailsLater):
        pointset.register_pooling(module.__name__.lower())(module)
    models, options = ["rff-careful", "rff-failslater"], ModelOptions(dim=16)
    short = Experiment.of(MaxRegression().task, models, model=options, seeds=(0,), recipe=task_recipe(steps=2))
    found = toy.compare(short, tmp_path / "out")
    assert [run.model for run in found.runs] == ["rff-careful"]
    (failure,) = found.failures
    line = FailsLater.forward.__code__.co_firstlineno + 2
    # A class that is pickled by value has no file from cloudpickle 3.1.3 on.
    words = rf"RuntimeError: too many sets \((.*test_symmetry\.py|<dynamic-code>), line {line}\)"
    assert re.fullmatch(words, failure.reason)
    assert "parts" not in repr(failure), "they are pages of bytes"


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


def test_recurrent_layers_and_distances_between_rows_are_counted():
    """Set2Set after row-wise layers: each of three steps has four gates from an input of 2 d and a state of d.

    DGCNN looks for 20 neighbours in 3, 64, 64 and 128 columns; all else is linear in the rows from 20 up.
    """
    n, gates = 6, 3 * 4 * DIM * (2 * DIM + DIM)
    head = 2 * DIM * DIM + DIM * CLASSES
    assert multiply_adds(model("rff-aggr.set2set"), n) == n * (3 * DIM + 3 * DIM * DIM) + gates + head
    by_size = [multiply_adds(model("dgcnn"), n) for n in (30, 40, 50)]
    assert by_size[2] - 2 * by_size[1] + by_size[0] == 2 * 10 * 10 * (3 + 64 + 64 + 128)
    told, plain = (multiply_adds(model("rff-max", local_features=kind), 100) for kind in ("upright", "none"))
    assert told > plain + 3 * 100**2


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


class Slow(nn.Module):
    inputs = 3

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, CLASSES)

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        assert points.shape == (1, 6, 3)
        assert not self.training
        time.sleep(0.02)
        return self.head(points.mean(dim=1))


def test_the_latency_is_that_of_the_model():
    assert latency_ms(Slow(), 6) >= 20


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
def test_on_a_gpu_counts_are_the_same():
    on_cpu, on_gpu = model("sab-max"), model("sab-max").cuda()
    assert multiply_adds(on_gpu, 100) == multiply_adds(on_cpu, 100)
    assert step_memory(on_gpu, torch.randn(8, 100, 3).cuda()) > 4 * sum(
        parameter.numel() for parameter in on_gpu.parameters()
    )
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
