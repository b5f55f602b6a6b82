"""Optimizers without torch's compiler take the same steps."""

import copy

import pytest
import torch
from torch import nn

from pointset.training import optimizers

NAMES = ("Adam", "AdamW", "SGD")


@pytest.mark.parametrize("name", NAMES)
def test_steps_and_states_are_those_of_torch_to_the_last_bit(name):
    model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2))
    twin = copy.deepcopy(model)
    own = getattr(optimizers, name)(model.parameters(), lr=0.1, weight_decay=0.01, fused=True)
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
