"""A checkpoint restores a model and its optimizer, or names what does not fit."""

import copy

import pytest
import torch
from torch import nn

from pointset.errors import PointsetError
from pointset.training.contents import Checkpoint


def trained(width: int = 3, steps: int = 2) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model and its optimizer after some steps, both with state."""
    model = nn.Linear(width, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1 / width)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(1, width)).sum().backward()
        optimizer.step()
    return model, optimizer


def state_of(model: nn.Module, optimizer: torch.optim.Optimizer) -> Checkpoint:
    return Checkpoint(copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict()))


def test_model_and_optimizer_go_on_from_where_they_were():
    model, optimizer = trained()
    checkpoint = state_of(model, optimizer)
    other = nn.Linear(3, 2)
    its = torch.optim.AdamW(other.parameters(), lr=7.0)
    checkpoint.restore(other, its)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)
        assert its.state[theirs].keys() == optimizer.state[mine].keys() != set()
        assert all(torch.equal(its.state[theirs][name], value) for name, value in optimizer.state[mine].items())
    assert its.param_groups[0]["lr"] == optimizer.param_groups[0]["lr"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda state: state["state"][0].update(exp_avg=torch.zeros(5)), "has another shape than its parameter"),
        (lambda state: state["state"][1].update(exp_avg=torch.zeros(1, 1)), "has another shape than its parameter"),
        (lambda state: state["param_groups"].append(state["param_groups"][0]), "different number of parameter groups"),
        (lambda state: state["param_groups"][0]["params"].append(2), "doesn't match the size"),
        (lambda state: state.pop("state"), "'state'"),
        (lambda state: state.update(state=3), "int"),
    ],
)
def test_the_state_of_another_optimizer_is_refused_with_the_reason(change, words):
    model, optimizer = trained()
    checkpoint = state_of(model, optimizer)
    change(checkpoint.optimizer)
    said = r"the optimizer state in the checkpoint does not belong to this run \(.*{}.*\): delete the checkpoint"
    with pytest.raises(PointsetError, match=said.format(words)):
        checkpoint.restore(*trained())


def test_the_weights_of_another_model_are_refused_before_the_optimizer_is_touched():
    model, optimizer = trained()
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(PointsetError, match=r"^the checkpoint does not fit the model that run\.json describes"):
        state_of(*trained(width=4)).restore(model, optimizer)
    assert str(optimizer.state_dict()) == str(before)
