"""Numbers of point sets with intervals: a model of the zoo, a line in the log of the size, the units of the targets."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from pointset.baselines.models import Baseline
from pointset.data.normalize import log_size, normalization
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.zoo.classifiers import CloudsLike, MaskLike, PointsLike, SetModel, checked_points
from pointset.zoo.predicting import SETS_AT_ONCE, Sets, as_given, cloud_batches, forward, predict

INTERVAL_LEVEL = 0.9
"""Default share of the shapes whose true value an interval contains."""
ONE_SIZE = 1e-4
"""Shapes whose logs of sizes have a smaller deviation have one size."""
EXACT = 1e-4
"""Least deviation that the size does not explain, as a share of the whole."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Predicted numbers, in the units of the targets.

    Example:
        >>> model = pointset.create_model("rff-max", targets="volume", dim=8)
        >>> numbers = model.predict_interval(X[:2])  # untrained: no shape was held out
        >>> numbers.targets, numbers.values.shape, numbers.low[0]
        (('volume',), (2, 1), array([-inf]))
    """

    targets: tuple[str, ...]
    """Names of the targets."""
    values: Float[ndarray, "N targets"]
    """The predictions."""
    low: Float[ndarray, "N targets"]
    """Lower ends of the intervals; -inf if too few shapes were held out in training for the level."""
    high: Float[ndarray, "N targets"]
    """Upper ends of the intervals; inf likewise."""
    level: float
    """Share of shapes like those of training whose true value is in the interval."""


class Regressor(SetModel):
    """Predicts numbers, such as mass or area, from clouds in their own units.

    outputs(X) = sum_k weight_k network_k(X normalised) + slope * log size(X), with one network as a rule, for targets
    that are standardised, and by their logs where they are positive and less skewed so. Normalisation removes the size
    of a shape, on which volume, area and mass depend first of all; a line in its log is exact for a shape that is only
    scaled. Size is the root mean square distance of the points from their mean.

    Intervals are those of split conformal prediction (Vovk, Gammerman and Shafer, *Algorithmic Learning in a Random
    World*, 2005; Lei et al., *Distribution-Free Predictive Inference for Regression*, JASA 113, 2018, algorithm 2): the
    prediction plus and minus the ceil((K + 1) level)-th smallest of the K absolute residuals of held-out shapes. With a
    predicted deviation (loss "gaussian") residuals are divided by it first (section 5.2 there). If shapes are
    exchangeable, a new shape's value is inside with a probability of at least `level`.

    Attributes:
        networks: called as `network(points, mask) -> [B, targets]`, or [B, 2 targets] with the logs of variances.
        weights: [networks], of their mean.
        targets: names of the targets.
        normalize: how clouds are normalised for the network; see `pointset.data.normalize`.
        log: bool [targets], True where the log of a target is predicted.
        mean, scale: [targets], of the targets or their logs in training: their value at size 1, and the deviation
            that the size does not explain.
        slope: [targets], of the standardised targets by the log of the size.
        scores: [targets, K], sorted residuals of held-out shapes; NaN before there are any.

    Example:
        >>> model = pointset.create_model("rff-max", targets="volume", dim=8)
        >>> model.predict(X[:2]).shape
        (2, 1)
    """

    weights: Tensor
    log: Tensor
    mean: Tensor
    scale: Tensor
    slope: Tensor
    scores: Tensor

    def __init__(self, networks: Sequence[SetModel], targets: Sequence[str]) -> None:
        super().__init__(networks[0].inputs)
        self.networks, self.targets, self.normalize = nn.ModuleList(networks), tuple(targets), "unit-sphere"
        self.register_buffer("weights", torch.full((len(networks),), 1 / len(networks)))
        count = len(self.targets)
        self.register_buffer("log", torch.zeros(count, dtype=torch.bool))
        for name, value in {"mean": 0.0, "scale": 1.0, "slope": 0.0}.items():
            self.register_buffer(name, torch.full((count,), value, dtype=torch.float64))
        self.register_buffer("scores", torch.zeros(count, 0, dtype=torch.float64))

    @property
    def has_variance(self) -> bool:
        """True if variances are predicted too."""
        spec: Any = self.networks[0].spec
        return bool(spec.classes == 2 * len(self.targets))

    def forward(self, points: PointsLike, mask: MaskLike = None) -> Float[Tensor, "B outputs"]:
        """Return standardised outputs [B, targets], or [B, 2 targets] with the logs of variances.

        The clouds are in their own units, not normalised; `mask` is True at real points.
        """
        points, mask = checked_points(self, points, mask)
        outputs = sum(
            weight * forward(network, self.prepared(points, mask, network), mask)
            for weight, network in zip(self.weights, self.networks, strict=True)
        )
        outputs = outputs.to(torch.promote_types(outputs.dtype, torch.float32))  # not in bfloat16: the line is long
        line = self.slope * log_size(points[..., :3], mask)[:, None]
        return torch.cat([outputs[:, : len(self.targets)] + line.to(outputs), outputs[:, len(self.targets) :]], dim=1)

    def prepared(self, points: Tensor, mask: Tensor | None, network: nn.Module) -> Tensor:
        """What a network gets: normalised clouds; a baseline gets them in their own size."""
        moved = normalization(self.normalize)(points[..., :3], mask)
        if isinstance(getattr(network, "model", None), Baseline):
            growth = log_size(points[..., :3], mask) - log_size(moved, mask)
            moved = moved * growth.exp()[:, None, None].to(moved)
        return torch.cat([moved, points[..., 3:]], dim=2)

    def learn_units(self, targets: Float[Tensor, "N targets"], sizes: Float[Tensor, " N"]) -> None:
        """Set logs, mean, scale and slope from the targets of training shapes and the logs of their sizes."""
        device = self.mean.device
        log = torch.tensor([_is_skewed(column.numpy()) for column in targets.T])
        units = torch.where(log, targets.clamp(min=torch.finfo(torch.float64).tiny).log(), targets)
        centred, spread = units - units.mean(dim=0), sizes - sizes.mean()
        known = float(spread.square().mean()) > ONE_SIZE**2
        slope = (spread @ centred) / spread.square().sum() if known else torch.zeros_like(centred[0])
        residuals = centred - spread[:, None] * slope
        scale = residuals.std(dim=0, correction=0).clamp(min=EXACT * centred.std(dim=0, correction=0))
        self.log, self.scale, self.slope = log.to(device), scale.to(device), (slope / scale).to(device)
        self.mean = (units.mean(dim=0) - slope * sizes.mean()).to(device)

    def standardised(self, targets: Float[Tensor, "N targets"]) -> Float[Tensor, "N targets"]:
        """Targets in the units of the outputs, float64."""
        targets = targets.to(self.mean)
        # A value that cannot be (not above 0, where all of training were) is very far, and not NaN.
        logs = targets.clamp(min=torch.finfo(torch.float64).tiny).log()
        return (torch.where(self.log, logs, targets) - self.mean) / self.scale

    def in_units(self, standard: Float[Tensor, "N targets"]) -> Float[Tensor, "N targets"]:
        """Standardised numbers in the units of the targets."""
        values = standard.to(self.mean) * self.scale + self.mean
        return torch.where(self.log, values.clamp(max=700).exp(), values)

    def deviations(self, outputs: Float[Tensor, "N outputs"]) -> Float[Tensor, "N targets"]:
        """The predicted standard deviations, standardised; ones if none are predicted."""
        logs = outputs[:, len(self.targets) :].double()
        return (logs / 2).exp() if logs.shape[1] else torch.ones_like(outputs, dtype=torch.float64)

    def calibrate(self, outputs: Float[Tensor, "K outputs"], targets: Float[Tensor, "K targets"]) -> None:
        """Keep the residuals of held-out shapes for the intervals."""
        residuals = (self.standardised(targets) - outputs[:, : len(self.targets)].to(self.mean)).abs()
        self.scores = (residuals / self.deviations(outputs).to(self.mean)).T.sort(dim=1).values.contiguous()

    def numbers(self, outputs: Float[Tensor, "N outputs"], level: float = INTERVAL_LEVEL) -> Numbers:
        """The numbers of outputs, with intervals at a level; a PointsetError unless it is in (0, 1)."""
        if not 0 < level < 1:
            raise PointsetError(f"level must be in (0, 1), got {level}")
        middle, held_out = outputs[:, : len(self.targets)].to(self.mean), self.scores.shape[1]
        rank = conformal_rank(held_out, level)
        reach = self.scores[:, rank - 1] if rank <= held_out else torch.full_like(self.mean, math.inf)
        spread = (reach * self.deviations(outputs).to(self.mean)).nan_to_num(nan=math.inf, posinf=math.inf)
        ends = (middle - spread, middle + spread)
        low, high = (torch.where(spread == math.inf, end, self.in_units(end)).cpu().numpy() for end in ends)
        return Numbers(self.targets, self.in_units(middle).cpu().numpy(), low, high, level)

    def predict(self, points: CloudsLike, mask: MaskLike = None, *, batch_size: int = SETS_AT_ONCE) -> Any:
        """Return the numbers of each cloud, float64 [B, targets], in the units of the targets.

        The clouds are in the units of training; see `Classifier.predict`.
        """
        outputs = predict(self, self._batches(points, mask, batch_size)).logits
        return as_given(torch.from_numpy(self.numbers(outputs).values), points)

    def predict_interval(self, points: CloudsLike, mask: MaskLike = None, *, level: float = INTERVAL_LEVEL) -> Numbers:
        """Return the numbers of each cloud with intervals; see `predict` and the class."""
        return self.numbers(predict(self, self._batches(points, mask, SETS_AT_ONCE)).logits, level)

    def embed_sets(self, points: PointsLike, mask: MaskLike = None) -> Float[Tensor, "B width"]:
        """Return the pooled rows of each set side by side, of clouds in their own units, by the first network."""
        points, mask = checked_points(self, points, mask)
        network: Any = self.networks[0]
        return network.embed_sets(self.prepared(points, mask, network), mask)

    def _batches(self, points: Any, mask: Any, batch_size: int) -> Iterator[tuple[Tensor, Tensor | None]]:
        return cloud_batches(points, mask, inputs=self.inputs, batch_size=batch_size)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        if (scores := state_dict.get(f"{prefix}scores")) is not None:  # as many as there were held-out shapes
            self.scores = self.scores.new_empty(scores.shape)
        super()._load_from_state_dict(state_dict, prefix, *others)


def conformal_rank(held_out: int, level: float) -> int:
    """Which of the sorted residuals of held-out shapes, from 1, is the reach of an interval; it may be too large."""
    return math.ceil((held_out + 1) * level - 1e-9)


def predict_numbers(
    model: Regressor, sets: Sets, *, level: float = INTERVAL_LEVEL, batch_size: int = SETS_AT_ONCE
) -> Numbers:
    """Predict the numbers of `PointSets`, or of batches in their own units; see `pointset.zoo.predicting.predict`."""
    if isinstance(sets, PointSets):
        sets = sets.normalized("none")
    return model.numbers(predict(model, sets, batch_size=batch_size).logits, level)


def sizes_of(sets: PointSets) -> Float[Tensor, " N"]:
    """The log of the size of each shape, of its fixed subset."""
    raw = sets.normalized("none")
    return torch.cat([log_size(raw[index][0][None, :, :3]) for index in range(len(raw))])


def _is_skewed(values: ndarray) -> bool:
    """True for positive values that are less skewed on a logarithmic scale."""
    from scipy.stats import skew

    return bool((values > 0).all()) and abs(skew(np.log(values))) < abs(skew(values))
