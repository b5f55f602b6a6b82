"""Packed sets against padded ones: same logits and gradients for any sizes, without padding."""

import pytest
import torch
from covering import Largest, covering_models
from torch import Tensor, nn

from pointset import create_model
from pointset.data.ragged import pad_sets
from pointset.nn.fast import packing
from pointset.nn.fast.packing import Packed
from pointset.nn.masks import STATISTICS
from pointset.zoo.classifiers import SetModel, checked_packed

LENGTHS = (5, 0, 7, 23, 7, 1, 0)
CLASSES = 4
OTHERS = (
    *covering_models(),
    "isab3-max+pma2",
    "rff-mean+aggr.softmax",
    "rff-aggr.quantile",
    "isab3-aggr.median",
    "rff-aggr.set2set",
    "rff-aggr.settransformer",
)


@pytest.fixture(autouse=True)
def never_padded(monkeypatch):
    """Prevents padding of small sets, which the library would choose because it is faster."""
    monkeypatch.setattr(packing, "RUN", 0)


def clouds(lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(length, 3, generator=generator, dtype=torch.double) for length in lengths]


def numbering(lengths: tuple[int, ...] = LENGTHS) -> Tensor:
    return torch.arange(len(lengths)).repeat_interleave(torch.tensor(lengths, dtype=torch.int64))


def model_of(name: str, **options) -> nn.Module:
    return create_model(name, classes=CLASSES, dim=16, **{"dropout": 0.0, **options}).double()


def learned(model: nn.Module, call) -> dict[str, Tensor]:
    """Logits of a call, the gradients of all points and of all parameters, and batch statistics."""
    sets = [one.requires_grad_() for one in clouds()]
    model.zero_grad()
    logits = call(sets)
    (logits * torch.linspace(-1, 2, logits.numel(), dtype=logits.dtype).view_as(logits)).sum().backward()
    # A way that leaves the key bias out gives it no gradient, one that does not gives it 0.
    gradients = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in model.named_parameters()}
    points = {f"set {number}": one.grad for number, one in enumerate(sets)}
    return {"logits": logits.detach(), **points, **gradients, **{n: b.clone() for n, b in model.named_buffers()}}


def padded(model: nn.Module):
    return lambda sets: model(*pad_sets(sets))


def packed(model: nn.Module):
    return lambda sets: model.packed(torch.cat(sets), numbering(), len(LENGTHS))


def check_same(name: str, train: bool = True, plain: bool = False, **options) -> None:
    results = []
    for way in (packed, padded):
        model = model_of(name, **options).train(train)
        for module in model.modules() if plain else ():
            module.register_forward_hook(lambda *_: None)
        results.append(learned(model, way(model)))
    found, expected = results
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        torch.testing.assert_close(found[key], value, rtol=1e-10, atol=1e-10, msg=lambda text, k=key: f"{k}: {text}")
    assert found["logits"].shape == (len(LENGTHS), CLASSES)


OPTIONS = [
    *({"form": form, "norm": norm} for form in ("reference", "paper") for norm in ("none", "layer", "batch", "set")),
    {"seeds": "pooled"},
    {"norm": "set", "prenorm": True},
    {"form": "paper", "norm": "batch", "prenorm": True},
    {"coordinates": "every", "outputs": "all", "norm": "batch", "layers": 3},
]


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", ["isab3-pma4", "sab-pma"])
def test_every_option_gives_what_padding_gives(name, options):
    check_same(name, **options)


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_every_pooling_gives_what_padding_gives(name):
    check_same(name)
    check_same(name, train=False)


@pytest.mark.parametrize("form", ["reference", "paper"])
def test_the_plain_operations_give_what_padding_gives(form):
    """As on a GPU or under autocast, where tiles are not used."""
    check_same("isab3-pma", form=form, plain=True)


@pytest.mark.parametrize("name", ["isab3-pma", "sab-max", "rffp-mean", "rff-aggr.median", "pointnet", "dgcnn"])
@pytest.mark.parametrize("train", [False, True])
def test_no_set_and_no_point(name, train):
    model, nothing = model_of(name).train(train), torch.zeros(0, 3).double()
    assert model.packed(nothing, torch.zeros(0, dtype=torch.int64)).shape == (0, CLASSES)
    torch.testing.assert_close(
        model.packed(nothing, torch.zeros(0, dtype=torch.int64), 2), model(torch.zeros(2, 0, 3).double())
    )


POINTS, BATCH = torch.zeros(4, 3).double(), torch.tensor([0, 0, 1, 1])


@pytest.mark.parametrize(
    ("points", "batch", "sets", "words"),
    [
        (POINTS[:, :2], BATCH, None, r"points must be \[N, 3\], got float64 \[4, 2\]"),
        (POINTS[None], BATCH, None, r"got float64 \[1, 4, 3\]"),
        (POINTS > 0, BATCH, None, r"points must be \[N, 3\], got bool .*real numbers"),
        (POINTS, BATCH[:3], None, r"batch must be integers \[4\].*got int64 \[3\]"),
        (POINTS, BATCH.bool(), None, "got bool"),
        (POINTS, BATCH - 1, None, "number sets from 0, got -1"),
        (POINTS, torch.tensor([0, 1, 0, 1]), None, "batch must be sorted"),
        (POINTS, BATCH, 1, "sets must be at least 2.*got 1"),
        (POINTS[:0], BATCH[:0], -1, "sets must be at least 0, got -1"),
    ],
)
def test_what_is_not_a_batch_is_refused(points, batch, sets, words):
    assert checked_packed(SetModel(3), POINTS, BATCH, 3)[1].lengths == (2, 2, 0)
    with pytest.raises(ValueError, match=words):
        checked_packed(SetModel(3), points, batch, sets)


def largest(model: nn.Module, call) -> int:
    with Largest() as seen:
        call().square().sum().backward()
    return seen.numbers


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("isab4-pma", {}),
        ("isab4-pma", {"form": "paper"}),
        ("isab4-max", {"norm": "set"}),
        ("rff-mean", {"norm": "batch"}),
        ("rffp-max", {}),
        ("isab4-aggr.softmax", {}),
    ],
)
def test_packed_sets_are_not_padded(name, options):
    lengths = (3,) * 10 + (500,) + (2,) * 9
    sets, model = clouds(lengths), create_model(name, classes=CLASSES, dim=16, **options).double()
    most = sum(lengths) * 16
    assert largest(model, lambda: model.packed(torch.cat(sets), numbering(lengths))) <= 1.1 * most
    assert largest(model, lambda: model(*pad_sets(sets))) >= 15 * most, "or the bound says nothing"


@pytest.mark.parametrize(
    ("lengths", "pads"),
    [
        ((), True),
        ((0, 0), True),
        ((70, 70, 70), True),
        ((3, 9, 0, 6), True),
        ((64, 64, 192), True),  # 3 * 192 = 320 + 2 * 128
        ((64, 64, 193), False),
        ((4,) * 900 + (5,) * 100, False),  # 1000 more rows, to save one run
    ],
)
def test_sets_are_padded_if_that_is_cheaper(lengths, pads, monkeypatch):
    monkeypatch.setattr(packing, "RUN", 128)
    sets = Packed(lengths)
    assert sets.is_better_padded == pads
    model, points = model_of("isab3-pma").eval(), torch.cat([torch.zeros(0, 3).double(), *clouds(lengths)])
    with torch.no_grad():
        found = model.packed(points, numbering(lengths), len(lengths))
        monkeypatch.setattr(packing, "RUN", -(10**9) if pads else 10**9)
        assert sets.is_better_padded != pads
        other = model.packed(points, numbering(lengths), len(lengths))
    torch.testing.assert_close(found, other, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", STATISTICS)
def test_every_statistic_of_packed_and_padded_sets_is_that_of_each_set_alone(name):
    """With a set of one row, whose mean is the row, and an empty set."""
    X, sets = torch.randn(7, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64), Packed((4, 1, 0, 2))
    statistic, (points, mask) = STATISTICS[name], sets.padded(X)
    found, padded = statistic(X, sets), statistic(points, mask)
    for index, rows in enumerate(X.split(sets.lengths)):
        if len(rows):
            torch.testing.assert_close(found[index], statistic(rows[None], None)[0])
    torch.testing.assert_close(padded, found)
