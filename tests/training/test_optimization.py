"""Steps of optimizers, learning rates of their schedules, dropout, and devices."""

import copy
import math
from contextlib import nullcontext

import pytest
import torch
from torch import nn

import pointset
from pointset import Recipe
from pointset.training import optimization
from pointset.training.loop import seeded_dropout
from pointset.training.optimization import Muon, learning_rate, make_optimizer


@pytest.mark.parametrize(
    ("name", "options", "vectors"),
    [
        ("isab4-pma", {"norm": "layer"}, {"inducing_points", "seeds"}),
        ("rff-aggr.settransformer", {}, {"seed"}),
        ("isab4-pma", {"trained_temperature": True, "score": "additive"}, {"log_temperature", "seeds"}),
    ],
)
def test_decay_leaves_vectors_alone_whoever_made_them(name, options, vectors):
    model = pointset.create_model(name, dim=16, **options)
    decayed, rest = make_optimizer(model, Recipe(weight_decay=0.1)).param_groups
    names = {id(parameter): name.split(".")[-1] for name, parameter in model.named_parameters()}
    assert vectors <= {names[id(parameter)] for parameter in rest["params"]}
    assert not vectors & {names[id(parameter)] for parameter in decayed["params"]}
    assert all(parameter.dim() > 1 for parameter in decayed["params"])
    assert (decayed["weight_decay"], rest["weight_decay"]) == (0.1, 0.0)


def one_step(gradient: float, **changes) -> tuple[float, float]:
    """The values of a weight and a bias, initially 1.0, after one step with equal gradients."""
    model = nn.Linear(1, 1)
    nn.init.ones_(model.weight)
    nn.init.ones_(model.bias)
    optimizer = make_optimizer(model, Recipe(learning_rate=0.1, **changes))
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, gradient)
    optimizer.step()
    return model.weight.item(), model.bias.item()


@pytest.mark.parametrize(
    ("options", "weight", "bias"),
    [
        # AdamW: w - rate decay w - rate sign(g). Adam: the penalty 5 w turns the sign. SGD: w - rate (g + decay w).
        ({"optimizer": "adamw", "weight_decay": 5.0}, 1 - 0.5 + 0.1, 1 + 0.1),
        ({"optimizer": "adam", "weight_decay": 5.0}, 1 - 0.1, 1 + 0.1),
        ({"optimizer": "sgd", "weight_decay": 5.0}, 1 - 0.1 * (-2 + 5), 1 + 0.2),
        ({"optimizer": "muon", "weight_decay": 5.0}, 1 - 0.5 + 0.1, 1 + 0.1),  # so small a matrix is AdamW's
        ({"optimizer": "adamw"}, 1 - 0.001 + 0.1, 1 + 0.1),
        ({"optimizer": "adam"}, 1 + 0.1, 1 + 0.1),
        ({"optimizer": "sgd"}, 1 + 0.2, 1 + 0.2),
    ],
)
def test_every_optimizer_decays_as_its_name_says(options, weight, bias):
    assert one_step(-2.0, **options) == pytest.approx((weight, bias), abs=1e-6)


def test_a_recipe_is_saved_with_the_decay_of_its_optimizer():
    assert Recipe().as_dict()["weight_decay"] == 0.01
    assert Recipe(optimizer="adam").as_dict()["weight_decay"] == 0.0
    descent = Recipe(optimizer="sgd", train_points=(8, 16)).as_dict()
    assert Recipe.from_dict(descent).as_dict() == descent


def rates(**changes) -> list[float]:
    recipe = Recipe(learning_rate=1.0, **changes)
    return [learning_rate(recipe, step, 100) for step in range(100)]


def test_learning_rates_follow_the_schedule():
    cosine = rates(schedule="cosine", warmup=0.1)
    assert cosine[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert cosine[10] == 1.0
    assert cosine[55] == pytest.approx(0.5)
    assert cosine[99] == pytest.approx(0.5 * (1 + math.cos(math.pi * 89 / 90)))
    step = rates(schedule="step", step_every=40, step_factor=0.3, warmup=0.0)
    assert [step[0], step[39], step[40], step[80]] == pytest.approx([1.0, 1.0, 0.3, 0.09])
    assert set(rates(schedule="constant", warmup=0.0)) == {1.0}


@pytest.mark.parametrize("name", ["Adam", "AdamW", "SGD"])
def test_steps_and_states_are_those_of_torch_to_the_last_bit(name):
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    twin = copy.deepcopy(model)
    own = getattr(optimization, name)(model.parameters(), lr=0.1, weight_decay=0.01, fused=True)
    torchs = getattr(torch.optim, name)(twin.parameters(), lr=0.1, weight_decay=0.01, fused=True)
    X = torch.rand(5, 3, generator=torch.Generator().manual_seed(0))
    for _ in range(4):
        for network, optimizer in ((model, own), (twin, torchs)):
            optimizer.zero_grad()
            network(X).square().sum().backward()
            optimizer.step()
        states = copy.deepcopy((own.state_dict(), torchs.state_dict()))
        torchs.load_state_dict(states[0])  # each goes on from the other's
        own.load_state_dict(states[1])
    assert all(map(torch.equal, model.parameters(), twin.parameters()))
    assert isinstance(own, getattr(torch.optim, name))


@pytest.mark.parametrize("shape", [(16, 16), (24, 8), (8, 24)])
def test_steps_of_muon_are_those_of_torch_also_for_matrices_of_one_shape(shape):
    generator = torch.Generator().manual_seed(0)
    ours = [torch.nn.Parameter(torch.randn(shape, generator=generator)) for _ in range(2)]
    theirs, start = copy.deepcopy(ours), copy.deepcopy(ours)
    optimizers = (
        Muon([{"params": ours, "hidden": True, "weight_decay": 0.1}], lr=0.01, precision=torch.bfloat16),
        torch.optim.Muon(theirs, lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
    )
    for _ in range(4):
        gradients = [torch.randn(shape, generator=generator) for _ in ours]
        for parameters, optimizer in zip((ours, theirs), optimizers, strict=True):
            for parameter, gradient in zip(parameters, gradients, strict=True):
                parameter.grad = gradient.clone()
            optimizer.step()
    for own, other, first in zip(ours, theirs, start, strict=True):
        assert torch.dist(own, other) < 0.01 * torch.dist(own, first)  # they sum in another order, in bfloat16


def test_hidden_matrices_alone_are_orthogonalised():
    model = pointset.create_model("isab4-pma", dim=16, norm="layer")
    optimizer = make_optimizer(model, Recipe(optimizer="muon", weight_decay=0.1))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    hidden, others, rest = ({names[id(one)] for one in group["params"]} for group in optimizer.param_groups)
    assert hidden | others | rest == set(names.values())
    assert others == {name for name, one in model.named_parameters() if one.dim() > 1 and {3, 40} & {*one.shape}}
    assert all(name.endswith("weight") for name in hidden)
    assert {"encoder.0.inducing_points", "pool.pma.seeds"} <= rest
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.1, 0.0]


def drawn(seed: int, epoch: int, rank: int = 0) -> tuple[float, ...]:
    with seeded_dropout(seed, epoch, torch.device("cpu"), rank):
        return tuple(torch.rand(4).tolist())


def test_every_seed_epoch_and_process_draws_its_own_numbers_and_draws_them_again():
    keys = [(seed, epoch, rank) for seed in range(3) for epoch in range(3) for rank in range(3)]
    assert len({drawn(*key) for key in keys}) == len(keys)
    assert drawn(1, 2) == drawn(1, 2)


class Watched(nn.Module):
    """Records which units dropout kept in the first batch of each epoch."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.layer = nn.Linear(3, 3)
        self.left: list[torch.Tensor] = []

    def forward(self, points: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        self.left.append(self.dropout(torch.ones(64)))
        return self.layer(points.amax(dim=1))


def test_a_training_drops_other_units_in_every_epoch_and_leaves_the_global_state_alone(train):
    models, before = (Watched(), Watched()), torch.get_rng_state()
    for model in models:
        pointset.fit(model, train, Recipe(epochs=3, batch_size=len(train)), seed=2, progress=False)
    masks = [tuple(mask.tolist()) for mask in models[0].left]
    assert len(set(masks)) == len(masks) == 3
    assert masks == [tuple(mask.tolist()) for mask in models[1].left]
    assert torch.equal(torch.get_rng_state(), before)


POOLS = ("mean", "sum", "pma", "pma2", "asp", "gem", "top2", "fspool", "pswe8", "fpswe8", "cov4", "repset2", "max+pma")
NAMES = [*(f"{name}-max" for name in ("none", "rff", "rffp", "sab", "isab4")), *(f"rff-{cache}" for cache in POOLS)]
STEPS = [(name, masked) for name in NAMES for masked in (False, True)]
STEPS += [("dumlp4-max", False), ("rff-dumlp4", False)]  # with a mask, their batch norm picks points by its values


@pytest.mark.parametrize(("name", "masked"), STEPS)
def test_no_tensor_of_a_training_step_is_on_another_device_than_the_points(name, masked, monkeypatch):
    """On "meta", whose tensors have no values: a new tensor on the CPU, or a value that is looked at, is an error."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # torch has none for "meta"
    monkeypatch.setattr(torch, "is_autocast_enabled", lambda *_: False)
    model = pointset.create_model(name, classes=3, dim=8, heads=2).to("meta").train()
    points, mask = torch.randn(2, 20, 3, device="meta"), torch.ones(2, 20, dtype=torch.bool, device="meta")
    logits = model(points, mask if masked else None)
    nn.functional.cross_entropy(logits, torch.zeros(2, dtype=torch.long, device="meta")).backward()
    assert model.embed_sets(points).device.type == "meta"
    assert {parameter.grad.device.type for parameter in model.parameters() if parameter.grad is not None} == {"meta"}
