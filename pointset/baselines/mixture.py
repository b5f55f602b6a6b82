"""A product of classifiers: their probabilities are multiplied, each at a temperature of its own."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.packing import Layout, Packed


class Mixture(nn.Module):
    """logits = sum_k log softmax(member_k(X) / temperature_k) / temperature: a product of experts.

    Attributes:
        members: classifiers of the same classes.
        temperatures: [members], fitted on held-out shapes.
        temperature: of the product.
    """

    temperatures: Tensor
    temperature: Tensor

    def __init__(self, members: list[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.register_buffer("temperatures", torch.ones(len(members)))
        self.register_buffer("temperature", torch.ones(()))

    def forward(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        if isinstance(mask, Packed):
            points, mask = mask.padded(points)
        return self.combine([member(points, mask) for member in self.members])

    def combine(self, logits: list[Float[Tensor, "B classes"]]) -> Float[Tensor, "B classes"]:
        """The logits of the product, from those of the members."""
        shares = zip(logits, self.temperatures, strict=True)
        total = torch.stack([(member / temperature).log_softmax(dim=1) for member, temperature in shares]).sum(dim=0)
        return total / self.temperature
