"""Local features as inputs of a network: computed for points without local features, and standardised."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.configuration import LocalFeatures
from pointset.data.local_features import WIDTHS, batch_local_features, rotate_local_features
from pointset.data.point_sets import PointSets

LARGEST = 5.0
"""Local features are clipped to this number of standard deviations."""
MOST_SHAPES = 512
"""Maximum number of shapes from which mean and standard deviation of the features are computed."""


class LocalFeatureInputs(nn.Module):
    """Append local features to points that have none, and standardise the local features.

    In training, all local features of a set are zeroed with probability `dropout`. Normal noise is added to the
    features of the other sets: features of generated meshes are exact, so a network could rely on more digits than
    scans have.

    Attributes:
        mean, deviation: [width], mean and standard deviation of each feature over the points of the training shapes.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, kind: LocalFeatures, given: int, noise: float = 0.0, dropout: float = 0.0) -> None:
        """Create inputs with one kind of local features for points of `given` coordinates and point features."""
        super().__init__()
        self.kind, self.given, self.width, self.noise, self.dropout = kind, given, WIDTHS[kind], noise, dropout
        self.register_buffer("mean", torch.zeros(self.width))
        self.register_buffer("deviation", torch.ones(self.width))

    def fit(self, features: Float[Tensor, "N width"]) -> None:
        """Compute mean and standard deviation from the features of N points."""
        self.mean = features.mean(dim=0)
        self.deviation = features.std(dim=0, correction=0).clamp(min=1e-3)

    def complete(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B n inputs"]:
        """Return points with local features [B, n, given + width], computed if the points are [B, n, given]."""
        if points.shape[2] != self.given:
            return points
        return torch.cat([points, batch_local_features(points[..., :3], self.kind, mask)], dim=2)

    def forward(
        self, points: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None
    ) -> Float[Tensor, "B n inputs"]:
        """Return points with standardised local features, which are zero at padded points."""
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
    """Compute the mean and deviation of local features for a new model; those of a trained model stay unchanged."""
    inputs = getattr(model, "numbers", None)
    if not isinstance(inputs, LocalFeatureInputs) or bool(inputs.mean.any()):
        return
    some = sets.with_local_features(inputs.kind).subset(torch.arange(0, len(sets), -(-len(sets) // MOST_SHAPES)))
    table = some.points[..., -inputs.width :]  # in the rotation of the sets
    table = table.flatten(0, 1) if some.mask is None else table[some.mask]
    inputs.fit(table.to(inputs.mean.device))


def turn_inputs(model: nn.Module, turn: Tensor) -> None:
    """Change a model in place, so that its output for X is the former output for X @ turn.T, up to rounding.

    Every layer that reads coordinates is linear, so its weights are multiplied by the matrix [3, 3]. A rotation between
    upward axes permutes local features and changes signs. Mean and deviation are changed in the same way.
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
