"""Muon: torch's own rule in higher precision for hidden matrices, AdamW for the rest."""

import copy

import pytest
import torch

import pointset
from pointset.training.muon import Muon, orthogonalized
from pointset.training.optimization import make_optimizer
from pointset.training.recipe import Recipe


@pytest.mark.parametrize("shape", [(16, 16), (24, 8), (8, 24)])
def test_steps_are_those_of_torch(shape):
    ours = torch.nn.Parameter(torch.randn(shape, generator=torch.Generator().manual_seed(0)))
    theirs = torch.nn.Parameter(ours.detach().clone())
    start = ours.detach().clone()
    optimizers = (
        Muon([{"params": [ours], "hidden": True, "weight_decay": 0.1}], lr=0.01, precision=torch.bfloat16),
        torch.optim.Muon([theirs], lr=0.01, weight_decay=0.1, adjust_lr_fn="match_rms_adamw"),
    )
    generator = torch.Generator().manual_seed(1)
    for _ in range(4):
        gradient = torch.randn(shape, generator=generator)
        for parameter, optimizer in zip((ours, theirs), optimizers, strict=True):
            parameter.grad = gradient.clone()
            optimizer.step()
    assert torch.dist(ours, theirs) < 0.01 * torch.dist(ours, start)  # they sum in another order, in bfloat16


@pytest.mark.parametrize("shape", [(16, 16), (24, 8), (8, 24)])
def test_directions_are_nearly_orthogonal(shape):
    generator = torch.Generator().manual_seed(0)
    matrices = torch.randn(3, *shape, generator=generator)
    found = orthogonalized(matrices)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.5
    assert values.max() < 1.3
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    assert (found * (left @ right)).sum(dim=(1, 2)).div(values.sum(dim=1)).min() > 0.95  # the same singular vectors


def test_matrices_of_one_shape_move_as_each_would_alone():
    generator = torch.Generator().manual_seed(0)
    both = [torch.nn.Parameter(torch.randn(12, 8, generator=generator)) for _ in range(2)]
    alone = copy.deepcopy(both)
    gradients = [torch.randn(12, 8, generator=generator) for _ in range(2)]
    for parameters in (both, alone[:1], alone[1:]):
        for parameter, gradient in zip(parameters, gradients if len(parameters) == 2 else gradients[-1:], strict=True):
            parameter.grad = gradient.clone()
    alone[0].grad = gradients[0].clone()
    for parameters in (both, alone[:1], alone[1:]):
        Muon([{"params": parameters, "hidden": True}], lr=0.1).step()
    for one, other in zip(both, alone, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-6)


def test_hidden_matrices_alone_are_orthogonalised():
    model = pointset.create_model("isab4-pma", dim=16, norm="layer")
    optimizer = make_optimizer(model, Recipe(optimizer="muon", weight_decay=0.1))
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    hidden, others, rest = ({names[id(one)] for one in group["params"]} for group in optimizer.param_groups)
    assert hidden | others | rest == set(names.values())
    assert others == {
        name for name, one in model.named_parameters() if one.dim() > 1 and (3 in one.shape or 40 in one.shape)
    }
    assert all(name.endswith("weight") for name in hidden)
    assert {"encoder.0.inducing_points", "pool.pma.seeds"} <= rest
    assert [group["weight_decay"] for group in optimizer.param_groups] == [0.1, 0.1, 0.0]
