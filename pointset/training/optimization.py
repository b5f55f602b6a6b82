"""The optimizer, the learning rate of each step, and the moving average of the weights."""

import copy
import inspect
import math
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn

from pointset.training.checkpoints import Weights
from pointset.training.muon import Muon
from pointset.training.recipe import Recipe
from pointset.zoo.models import load_weights

# These are not linear maps, so nothing speaks for pulling them to zero.
UNDECAYED = ("inducing_points", "seeds", "ind", "seed")  # the last two are torch-geometric's names
FEWEST_HIDDEN = 8
"""Smallest side of a matrix that Muon moves: it is meant for those between hidden layers."""
WRAPPED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
T = TypeVar("T", bound=Optimizer)


def uncompiled(optimizer: type[T]) -> type[T]:
    """The optimizer with the same steps, without torch's compiler, whose import takes as long as that of torch itself.

    `torch.optim` imports the compiler when an optimizer is made, only to exclude some methods from compilation. The
    functions that these methods wrap do the same and import nothing.
    """
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in WRAPPED}
    step = torch.no_grad()(inspect.unwrap(optimizer.step))
    about = {"__doc__": optimizer.__doc__, "__module__": optimizer.__module__}
    return type(optimizer.__name__, (optimizer,), {**methods, **about, "step": step})


Adam = uncompiled(torch.optim.Adam)
AdamW = uncompiled(torch.optim.AdamW)
SGD = uncompiled(torch.optim.SGD)


def make_optimizer(model: nn.Module, recipe: Recipe) -> Optimizer:
    """The recipe's optimizer; decay on matrices only, never on norms, biases, inducing points or seeds."""
    groups = _groups(model, recipe.decay)
    match recipe.optimizer:
        case "adamw":
            return AdamW(groups, lr=recipe.learning_rate, fused=True)
        case "adam":
            return Adam(groups, lr=recipe.learning_rate, fused=True)
        case "sgd":
            momentum, nesterov = recipe.inertia, recipe.nesterov
            return SGD(groups, lr=recipe.learning_rate, momentum=momentum, nesterov=nesterov, fused=True)
        case "muon":
            return uncompiled(Muon)(
                _with_hidden(groups), lr=recipe.learning_rate, precision=getattr(torch, recipe.precision)
            )


def _groups(model: nn.Module, decay: float) -> list[dict[str, Any]]:
    decayed: list[nn.Parameter] = []
    rest: list[nn.Parameter] = []
    for name, parameter in model.named_parameters():
        matrix = parameter.dim() >= 2 and name.rsplit(".", 1)[-1] not in UNDECAYED
        (decayed if matrix else rest).append(parameter)
    return [{"params": decayed, "weight_decay": decay}, {"params": rest, "weight_decay": 0.0}]


def _with_hidden(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The groups, with hidden matrices in one of their own: not the last one, and none that reads a point's numbers."""
    matrices, rest = groups
    *inner, last = matrices["params"]
    hidden = [matrix for matrix in inner if matrix.dim() == 2 and min(matrix.shape) >= FEWEST_HIDDEN]
    chosen = set(map(id, hidden))
    others = [matrix for matrix in inner if id(matrix) not in chosen]
    return [{**matrices, "params": hidden, "hidden": True}, {**matrices, "params": [*others, last]}, rest]


class MovingAverage:
    """An exponential moving average of a model's weights and buffers; it begins with those after one step.

    The numbers are those of `torch.optim.swa_utils.AveragedModel`, which collects all tensors at every step and takes
    five times as long for a small model. Counters, such as the number of batches of a norm, are copied.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.module = copy.deepcopy(model)
        """The model with the averaged weights."""
        self._follow = get_ema_multi_avg_fn(decay)
        self._begun = False
        pairs = list(zip(_tensors(self.module), _tensors(model), strict=True))
        self._averaged = [pair for pair in pairs if pair[0].is_floating_point() or pair[0].is_complex()]
        self._copied = [pair for pair in pairs if not (pair[0].is_floating_point() or pair[0].is_complex())]

    @torch.no_grad()
    def update(self) -> None:
        """Add the weights after a further step."""
        for mine, theirs in self._copied if self._begun else self._averaged + self._copied:
            mine.copy_(theirs)
        if self._begun and self._averaged:
            self._follow([mine for mine, _ in self._averaged], [theirs for _, theirs in self._averaged], 0)
        self._begun = True

    def load(self, weights: Weights) -> None:
        """Continue from the averaged weights of a checkpoint."""
        load_weights(self.module, weights, "the checkpoint")
        self._begun = True


def _tensors(model: nn.Module) -> list[Tensor]:
    return [tensor.detach() for tensor in (*model.parameters(), *model.buffers())]


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
