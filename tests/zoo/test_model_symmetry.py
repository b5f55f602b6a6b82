"""Every model of the zoo is a function of sets: neither order, nor padding, nor the other sets of a batch matter."""

import re

import pytest
import torch
from small_models import ALL, FEW, model_of
from torch import Tensor, nn
from toy import OWN_WEIGHTS, normal

import pointset
from pointset.nn import registry

ENCODERS = [part.listed for part in registry.entries("encoder")]
OPTIONS = [
    {"form": "paper"},
    {"form": "paper", "norm": "set", "prenorm": True},
    {"norm": "layer"},
    {"norm": "set", "prenorm": True},
    {"scale": "head", "temperature": 0.5},
    {"scale": 0.7, "trained_temperature": True, "score": "bilinear"},
    {"score": "additive", "score_layers": 2},
    {"weights": "sparsemax", "norm": "group"},
    {"weights": ("entmax15", "csoftmax", "softmax", "csparsemax"), "norm": "instance", "prenorm": True},
    {"weights": "csparsemax", "coverage": "seeds", "bound": 1.0},
    {"weights": "csoftmax", "coverage": "heads", "bound": 1.5},
    {"pool_seeds": "mean"},
    {"pool_seeds": "statistics"},
    {"initial": "xavier"},
    {"head": "rff"},
    {"layers": 3},
    *({"weights": own} for own in OWN_WEIGHTS),
]
WITH_OPTIONS = [("isab4-pma", one) for one in OPTIONS]
WITH_OPTIONS += [("sab-max", one) for one in OPTIONS if {"form", "norm"} & one.keys()]


def title(value: object) -> str:
    return re.sub(" at 0x[0-9a-f]+", "", str(value))  # of a function: another in each process


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in FEW), *WITH_OPTIONS], ids=title)
def test_invariant_to_order_and_padding(name, options):
    found = pointset.check_symmetry(model_of(name, **options))
    assert found.kind == "invariant"
    assert found.worst < 1e-8


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_is_equivariant(encoder):
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.model = model_of(f"{encoder}-max")

        def forward(self, points: Tensor, mask: Tensor) -> Tensor:
            return self.model.encode(points, mask)

    found = pointset.check_symmetry(Encoder())
    assert found.kind == "equivariant"
    assert found.worst < 1e-8


@pytest.mark.parametrize(("name", "options"), [*((name, {}) for name in ALL), *WITH_OPTIONS], ids=title)
def test_padding_changes_neither_logits_nor_gradients(name, options):
    """For any length and content of padding, in training mode, so that batch statistics are tested too."""
    model = model_of(name, dropout=0.0, **options).train()
    points, mask = normal(3, 9, 3), torch.ones(3, 9, dtype=torch.bool)
    mask[1, 4:] = False

    def outcome(points: Tensor, mask: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        model.zero_grad()
        logits = model(points, mask)
        logits.square().sum().backward()
        return logits, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}

    logits, gradients = outcome(points, mask)
    assert gradients
    for extra in (1, 50):
        garbage = torch.full((3, extra, 3), float("nan"), dtype=torch.float64)
        padded, padding = torch.cat([points, garbage], 1), torch.zeros(3, extra, dtype=torch.bool)
        found, found_gradients = outcome(padded, torch.cat([mask, padding], 1))
        torch.testing.assert_close(found, logits)
        # The absorbed way leaves the key bias out, whose gradient is zero.
        assert all("key.bias" in key for key in gradients.keys() ^ found_gradients.keys())
        for key in gradients.keys() & found_gradients.keys():
            pair = found_gradients[key], gradients[key]
            torch.testing.assert_close(*pair, atol=1e-9, rtol=1e-7, msg=lambda text, key=key: f"{key}: {text}")


@pytest.mark.parametrize("name", ALL)
def test_an_empty_set_gives_finite_logits_that_depend_on_nothing(name):
    model, points = model_of(name), normal(2, 5, 3)
    mask = torch.tensor([[True] * 5, [False] * 5])
    logits = model(points, mask)
    assert logits.isfinite().all()
    torch.testing.assert_close(model(points[:, :0])[0], logits[1])
    torch.testing.assert_close(model(points * 3, mask)[1], logits[1])


@pytest.mark.parametrize("form", ["reference", "paper"])
@pytest.mark.parametrize("name", [name for name in ALL if name != "dgcnn"])
def test_every_parameter_gets_a_gradient(name, form):
    model = model_of(name, form=form).train()
    model(normal(4, 50, 3)).square().sum().backward()
    # The key bias shifts all logits of a row alike and cancels, in the last layer of logits exactly.
    idle = [n for n, p in model.named_parameters() if (p.grad is None or not p.grad.any()) and "key.bias" not in n]
    assert idle == []
