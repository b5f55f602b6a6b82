"""How weights move: the optimizer, the learning rate of each step, and the average that follows them."""

import math
from typing import Any

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from pointset.training.recipe import Recipe

# These are trained as data, not as linear maps: there is no reason to pull them to zero.
UNDECAYED = ("inducing_points", "seeds", "ind", "seed")  # the last two are torch-geometric's names


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """The recipe's optimizer; decay on matrices only, never on norms, biases, inducing points or seeds."""
    groups = _groups(model, recipe.decay)
    match recipe.optimizer:
        case "adamw":
            return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=True)
        case "adam":
            return torch.optim.Adam(groups, lr=recipe.learning_rate, fused=True)
        case "sgd":
            momentum, nesterov = recipe.inertia, recipe.nesterov
            return torch.optim.SGD(groups, lr=recipe.learning_rate, momentum=momentum, nesterov=nesterov, fused=True)


def _groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    decayed: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        matrix = parameter.dim() >= 2 and name.rsplit(".", 1)[-1] not in UNDECAYED
        (decayed if matrix else rest).append(parameter)
    return [{"params": decayed, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]


def moving_average(model: nn.Module, recipe: Recipe, steps: int) -> AveragedModel | None:
    """The recipe's exponential moving average of a model's weights and buffers; it begins with those after one step.

    Args:
        model: whose weights are followed; the average is a copy.
        recipe: None is returned where it asks for no average.
        steps: that the average, whose weights are filled in later, has followed already.
    """
    if recipe.average is None:
        return None
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(recipe.average), use_buffers=True)
    average.n_averaged.fill_(steps)
    return average


def learning_rate(recipe: Recipe, step: int, steps: int) -> float:
    """The rate of step `step` (from 0) of `steps`: a linear warm-up, then the recipe's schedule."""
    warmup = int(recipe.warmup * steps)
    if step < warmup:
        return recipe.learning_rate * (step + 1) / warmup
    if recipe.schedule == "constant":
        return recipe.learning_rate
    if recipe.schedule == "step":
        return recipe.learning_rate * recipe.step_factor ** (step // recipe.step_every)
    share = (step - warmup) / max(1, steps - warmup)
    return recipe.learning_rate * 0.5 * (1.0 + math.cos(math.pi * share))
