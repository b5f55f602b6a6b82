"""Muon: steps along the nearest orthogonal matrix to the momentum.

K. Jordan et al., 2024, "Muon: an optimizer for hidden layers in neural networks"; the size of a step as in "Muon is
Scalable for LLM Training", arXiv 2502.16982, section 2.2.

`torch.optim.Muon` has the same rule, but handles one matrix after the other and always in bfloat16, which is slow on a
CPU without instructions for it. Here matrices of one shape are stacked, in the precision of the model's products, and
all other parameters are updated by AdamW, as in the papers.
"""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer
from torch.optim.adamw import adamw

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
"""Published coefficients of the quintic whose iteration brings all singular values near 1."""
REPETITIONS = 5
SMALLEST = 1e-7
MATCHED = 0.2
"""Root mean square of the entries of AdamW's steps (second paper), so that one learning rate serves both."""
BETAS, EPSILON = (0.9, 0.999), 1e-8


class Muon(Optimizer):
    """Muon, with Nesterov's momentum, for the groups with `hidden=True`; AdamW for the others."""

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
        """Step for matrices of the same shape."""
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
            [self._steps(parameter) for parameter in parameters],
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
        """Optimizer state of a parameter, initially zero."""
        state = self.state[parameter]
        if name not in state:
            state[name] = torch.zeros_like(parameter)
        return state[name]

    def _steps(self, parameter: Tensor) -> Tensor:
        """Number of steps so far."""
        return self.state[parameter].setdefault("step", torch.zeros((), device=parameter.device))


def orthogonalized(matrices: Tensor) -> Tensor:
    """Matrices [k, a, b] with their singular values moved near 1, by Newton-Schulz iterations."""
    tall = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if tall else matrices
    x = x / x.norm(dim=(1, 2), keepdim=True).clamp(min=SMALLEST)
    a, b, c = COEFFICIENTS
    for _ in range(REPETITIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x.mT if tall else x
