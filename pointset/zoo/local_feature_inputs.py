"""Local features as inputs of a network: computed for points without them, and standardised."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import LocalFeatures
from pointset.data.local_features import WIDTHS, batch_local_features, rotate_local_features
from pointset.data.point_sets import PointSets

LARGEST = 5.0
"""Standard deviations to which local features are clipped."""
MOST_SHAPES = 512
"""Shapes whose points give mean and deviation of the features."""


class LocalFeatureInputs(nn.Module):
    """Append local features to points, or standardise those that came with them.

    In training, the features of a random share `dropout` of the sets are zeroed, and the others get normal noise: they
    are exact on generated meshes, and a network that sees nothing else relies on more digits than scans have.

    Attributes:
        mean, deviation: [width], of the features over the points of the training shapes.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, kind: LocalFeatures, given: int, noise: float = 0.0, dropout: float = 0.0) -> None:
        """Make inputs of a kind for points of `given` numbers (coordinates and features)."""
        super().__init__()
        self.kind, self.given, self.width, self.noise, self.dropout = kind, given, WIDTHS[kind], noise, dropout
        self.register_buffer("mean", torch.zeros(self.width))
        self.register_buffer("deviation", torch.ones(self.width))

    def fit(self, features: Float[Tensor, "N width"]) -> None:
        """Take mean and deviation of the features of points."""
        self.mean = features.mean(dim=0)
        self.deviation = features.std(dim=0, correction=0).clamp(min=1e-3)

    def complete(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B n inputs"]:
        """Return points with local features [B, n, given + width]: computed where the points are [B, n, given]."""
        if points.shape[2] != self.given:
            return points
        return torch.cat([points, batch_local_features(points[..., :3], self.kind, mask)], dim=2)

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B n inputs"]:
        """Return the completed points with standardised features; zeros in padded rows."""
        points = self.complete(points, mask)
        standard = ((points[..., self.given :] - self.mean) / self.deviation).clamp(-LARGEST, LARGEST)
        if self.training and self.noise:
            standard = standard + self.noise * torch.randn_like(standard)
        if self.training and self.dropout:
            standard = standard * (torch.rand(len(points), 1, 1, device=points.device) >= self.dropout)
        if mask is not None:
            standard = standard.masked_fill(~mask[:, :, None], 0.0)
        return torch.cat([points[..., : self.given], standard], dim=2)


def fit_local_features(model: nn.Module, sets: PointSets) -> None:
    """Standardise a new model's inputs by the local features of its training shapes; trained weights keep theirs."""
    inputs = getattr(model, "numbers", None)
    if not isinstance(inputs, LocalFeatureInputs) or bool(inputs.mean.any()):
        return
    some = sets.with_local_features(inputs.kind).subset(torch.arange(0, len(sets), -(-len(sets) // MOST_SHAPES)))
    table = some.points[..., -inputs.width :]  # rotated as the sets are
    table = table.flatten(0, 1) if some.mask is None else table[some.mask]
    inputs.fit(table.to(inputs.mean.device))


def turn_inputs(model: nn.Module, turn: Tensor) -> None:
    """Change a model, in place, into one that gives for X what it gave for X @ turn.T: exact, but for rounding.

    Every layer that reads coordinates is linear, so the matrix [3, 3] goes into its weights. A rotation between upward
    axes permutes local features, up to their sign, so that mean and deviation follow.
    """
    whole = turn
    if isinstance(numbers := getattr(model, "numbers", None), LocalFeatureInputs):
        one = torch.eye(numbers.width)[None].to(turn)
        turned = rotate_local_features(one, turn[None], numbers.kind)[0].T
        whole = torch.block_diag(turn, torch.eye(numbers.given - 3).to(turn), turned)
        numbers.mean, numbers.deviation = turned.T @ numbers.mean, turned.abs().T @ numbers.deviation
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear) and module.in_features == len(whole):
                module.weight.copy_(module.weight @ whole.to(module.weight))
