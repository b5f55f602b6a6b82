"""The optimizer, and the learning rate of each step."""

import inspect
import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.adamw import adamw

from pointset.errors import PointsetError, described, quoted
from pointset.training.recipe import Recipe

MOMENTUM = 0.9
"""Momentum of SGD."""
FEWEST_HIDDEN = 8
"""Minimum number of rows and columns of a matrix for Muon, which is meant for weights between hidden layers."""
COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Published coefficients of a polynomial of degree 5, whose iteration moves all singular values near 1."""
REPETITIONS = 5
SMALLEST = 1e-7
MATCHED = 0.2
"""Root mean square of the entries of AdamW's steps (arXiv 2502.16982). Muon steps are scaled to the same value, so that
both optimizers can have the same learning rate."""
BETAS, EPSILON = (0.9, 0.999), 1e-8
WRAPPED = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
T = TypeVar("T", bound=Optimizer)
OptimizerBuilder = Callable[[Iterator[nn.Parameter]], Optimizer]


def uncompiled(optimizer: type[T]) -> type[T]:
    """Return the optimizer class without torch's compiler, because the compiler is as slow to import as torch.

    `torch.optim` imports the compiler when an optimizer is created, only to exclude some methods from compilation. This
    class has the unwrapped methods, which have the same effect without the import.
    """
    methods = {name: inspect.unwrap(getattr(optimizer, name)) for name in WRAPPED}
    step = torch.no_grad()(inspect.unwrap(optimizer.step))
    about = {"__doc__": optimizer.__doc__, "__module__": optimizer.__module__}
    return type(optimizer.__name__, (optimizer,), {**methods, **about, "step": step})


Adam = uncompiled(torch.optim.Adam)
AdamW = uncompiled(torch.optim.AdamW)
SGD = uncompiled(torch.optim.SGD)


def make_optimizer(model: nn.Module, recipe: Recipe) -> Optimizer:
    """Return the recipe's optimizer. Weight decay excludes norms, biases, inducing points and seeds."""
    undecayed = {
        id(parameter)
        for module in model.modules()
        for name, parameter in module.named_parameters()
        if name.rpartition(".")[2] in getattr(module, "no_decay", ())
    }
    parameters = list(model.parameters())
    decayed = [parameter for parameter in parameters if parameter.dim() >= 2 and id(parameter) not in undecayed]
    rest = [parameter for parameter in parameters if parameter.dim() < 2 or id(parameter) in undecayed]
    groups = [{"params": decayed, "weight_decay": recipe.decay}, {"params": rest, "weight_decay": 0.0}]
    match recipe.optimizer:
        case "adamw":
            return AdamW(groups, lr=recipe.learning_rate, fused=True)
        case "adam":
            return Adam(groups, lr=recipe.learning_rate, fused=True)
        case "sgd":
            return SGD(groups, lr=recipe.learning_rate, momentum=MOMENTUM, fused=True)
        case "muon":
            # Hidden matrices exclude the last one, and those with a small side, such as matrices for coordinates.
            hidden = [matrix for matrix in decayed[:-1] if matrix.dim() == 2 and min(matrix.shape) >= FEWEST_HIDDEN]
            chosen = {id(matrix) for matrix in hidden}
            groups[0]["params"] = [matrix for matrix in decayed if id(matrix) not in chosen]
            groups = [{"params": hidden, "weight_decay": recipe.decay, "hidden": True}, *groups]
            return uncompiled(Muon)(groups, lr=recipe.learning_rate, precision=getattr(torch, recipe.precision))


def built_optimizer(build: OptimizerBuilder, model: nn.Module) -> Optimizer:
    """Return the optimizer that a user's function builds. PointsetError if the result is no optimizer."""
    if not callable(build):
        raise PointsetError(
            "optimizer must be a function of the parameters, such as partial(torch.optim.Adam, lr=1e-3), or a name in "
            f"Recipe(optimizer=...), {Recipe.allowed_values('optimizer')}; got {quoted(build)}"
        )
    optimizer = build(model.parameters())
    if not isinstance(optimizer, Optimizer):
        raise PointsetError(f"optimizer(parameters) must return a torch.optim.Optimizer, got {described(optimizer)}")
    return optimizer


def describe_optimizer(optimizer: Optimizer) -> dict[str, Any]:
    """Return the class of a user's optimizer and the options of its parameter groups, for run.json."""
    groups = [
        {name: str(value) for name, value in group.items() if name != "params"} for group in optimizer.param_groups
    ]
    return {"class": type(optimizer).__qualname__, "groups": groups}


class Muon(Optimizer):
    """Muon with Nesterov momentum for parameter groups with `hidden=True`, and AdamW for the other groups.

    The direction of a Muon step is the orthogonal matrix nearest to the momentum (K. Jordan et al., 2024, "Muon: an
    optimizer for hidden layers in neural networks"). The size of a step is as in "Muon is Scalable for LLM Training"
    (arXiv 2502.16982, section 2.2). `torch.optim.Muon` has the same update rule, but updates one matrix after the
    other, always in bfloat16. This is slow on a CPU without bfloat16 instructions. This class stacks matrices of the
    same shape, and uses the precision of the recipe.
    """

    def __init__(
        self, groups: list[dict[str, Any]], *, lr: float, momentum: float = 0.95, precision: torch.dtype = torch.float32
    ) -> None:
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": 0.0, "hidden": False})
        self.precision = precision

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Update all parameters that have a gradient."""
        for group in self.param_groups:
            alike: dict[Any, list[Tensor]] = defaultdict(list)
            for parameter in group["params"]:
                if parameter.grad is not None:
                    alike[parameter.shape if group["hidden"] else ()].append(parameter)
            for parameters in alike.values():
                (self._orthogonal_step if group["hidden"] else self._adamw_step)(parameters, group)

    def _orthogonal_step(self, matrices: list[Tensor], group: dict[str, Any]) -> None:
        """Update matrices of the same shape by Muon."""
        gradients = [matrix.grad for matrix in matrices if matrix.grad is not None]
        momenta = [self._kept(matrix, "momentum_buffer") for matrix in matrices]
        torch._foreach_lerp_(momenta, gradients, 1.0 - group["momentum"])
        ahead = torch._foreach_lerp(gradients, momenta, group["momentum"])
        directions = orthogonalized(torch.stack(ahead).to(self.precision)).to(matrices[0].dtype).unbind()
        torch._foreach_mul_(matrices, 1.0 - group["lr"] * group["weight_decay"])
        torch._foreach_add_(matrices, directions, alpha=-group["lr"] * MATCHED * max(matrices[0].shape) ** 0.5)

    def _adamw_step(self, parameters: list[Tensor], group: dict[str, Any]) -> None:
        adamw(
            parameters,
            [parameter.grad for parameter in parameters if parameter.grad is not None],
            [self._kept(parameter, "exp_avg") for parameter in parameters],
            [self._kept(parameter, "exp_avg_sq") for parameter in parameters],
            [],
            [self.state[p].setdefault("step", torch.zeros((), device=p.device)) for p in parameters],
            fused=True,
            amsgrad=False,
            beta1=BETAS[0],
            beta2=BETAS[1],
            lr=group["lr"],
            weight_decay=group["weight_decay"],
            eps=EPSILON,
            maximize=False,
        )

    def _kept(self, parameter: Tensor, name: str) -> Tensor:
        """Return a tensor of a parameter's optimizer state. All states are initially zero."""
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        return state[name]


def orthogonalized(matrices: Tensor) -> Tensor:
    """Return matrices [k, a, b] after Newton-Schulz iterations, which move the singular values near 1."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=SMALLEST)
    a, b, c = COEFFICIENTS
    for _ in range(REPETITIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x


def learning_rate(recipe: Recipe, step: int, steps: int, peak: float | None = None) -> float:
    """Return the learning rate of a step, counted from 0: linear warm-up to the peak, then the recipe's schedule."""
    peak, warmup = recipe.learning_rate if peak is None else peak, int(recipe.warmup * steps)
    if callable(recipe.schedule):
        return peak * recipe.schedule(step, steps)
    if step < warmup:
        return peak * (step + 1) / warmup
    if recipe.schedule == "constant":
        return peak
    if recipe.schedule == "step":
        return peak * recipe.step_factor ** (step // recipe.step_every)
    share = (step - warmup) / max(1, steps - warmup)
    return peak * 0.5 * (1.0 + math.cos(math.pi * share))
