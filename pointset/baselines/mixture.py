"""A product of classifiers: their probabilities are multiplied, each with a weight of its own."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout, Packed


class Mixture(nn.Module):
    """logits = sum_k weight_k log softmax(member_k(X) / temperature_k) - prior: a product of experts.

    Attributes:
        members: classifiers of the same classes.
        temperatures, weights: [members], fitted on held-out shapes.
        prior: [classes], what is subtracted because the members favour classes with many training shapes: the log of
            the classes' shares, times a strength that is fitted on held-out shapes too.
    """

    temperatures: Tensor
    weights: Tensor
    prior: Tensor

    def __init__(self, members: list[nn.Module], classes: int) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.register_buffer("temperatures", torch.ones(len(members)))
        self.register_buffer("weights", torch.ones(len(members)))
        self.register_buffer("prior", torch.zeros(classes))

    def forward(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        if isinstance(mask, Packed):
            points, mask = mask.padded(points)
        return self.combine([member(points, mask) for member in self.members])

    def combine(self, logits: list[Float[Tensor, "B classes"]]) -> Float[Tensor, "B classes"]:
        """The logits of the product, from those of the members."""
        shares = [(own / own_t).log_softmax(dim=1) for own, own_t in zip(logits, self.temperatures, strict=True)]
        return torch.einsum("kbc,k->bc", torch.stack(shares), self.weights) - self.prior

    def fit(self, logits: list[Float[Tensor, "N classes"]], labels: Int[Tensor, " N"], counts: Tensor) -> "Mixture":
        """Fit weights and prior to the members' logits for held-out shapes, at the temperatures; returns itself.

        Weights are near one over the number of members if there are few shapes.

        Args:
            logits: of each member.
            labels: classes of the shapes.
            counts: [classes], training shapes of each class.
        """
        shares = torch.where(counts > 0, counts.clamp(min=1) / counts.sum(), 1.0).log()
        exponents = torch.zeros(len(logits) + 1, requires_grad=True)
        descent = torch.optim.LBFGS([exponents], max_iter=100, line_search_fn="strong_wolfe")

        def loss() -> Tensor:
            descent.zero_grad()
            self.weights, self.prior = exponents[:-1].exp() / len(logits), exponents[-1] * shares
            value = nn.functional.cross_entropy(self.combine(logits), labels)
            value = value + exponents.square().sum() / len(labels)
            value.backward()
            return value

        with torch.enable_grad():
            descent.step(loss)
        chosen = exponents.detach()
        self.weights, self.prior = chosen[:-1].exp() / len(logits), chosen[-1].clamp(0, 1) * shares
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        if temperature := state_dict.pop(f"{prefix}temperature", None):  # of runs from before there were weights
            state_dict[f"{prefix}weights"] = (1 / temperature).expand_as(self.weights)
            state_dict[f"{prefix}prior"] = self.prior
        super()._load_from_state_dict(state_dict, prefix, *others)
