"""Measures of how inducing points or seeds specialise on regions of shapes, for a trained and an untrained model."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
from tabulate import tabulate
from torch import Tensor, nn

from pointset.configuration import check
from pointset.data.augmentations import augmentation_from_names
from pointset.data.batches import epoch_generator
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap, find_map
from pointset.explain.recording import record_maps
from pointset.zoo.models import Spec, build_model

CELLS = 4
"""Number of cells along each axis of the grid in which the attention on different shapes is compared."""
SHAPES_AT_ONCE = 32
"""Number of shapes in a forward pass."""
DESCRIPTIONS = {
    "entropy": "1: uniform over the points",
    "overlap": "1: equal to the other maps",
    "consistency": "1: one region per class",
    "specificity": "consistency, minus others",
    "stability": "if augmented, minus others",
}


@dataclass(frozen=True, eq=False)
class Specialisation:
    """Specialisation measures of each inducing point (or seed) of one layer.

    Example:
        >>> from pointset.explain.specialisation import specialisation, untrained
        >>> measured = specialisation(model, test, per_class=3)
        >>> measured.layer, measured.shapes, "entropy" in measured.measures
        ('encoder.0.reads', 6, True)
        >>> "untrained" in measured.table(specialisation(untrained(model), test, per_class=3))
        True
    """

    layer: str
    """Name of the layer with the inducing points or seeds."""
    shapes: int
    """Number of shapes measured."""
    measures: dict[str, Tensor]
    """The values [heads, inducing points] of each measure. The similarity of two rows of weights is 1 minus their total
    variation.

    - "entropy": mean normalised entropy (entropy / log n) of the row of an inducing point. 1 is uniform attention.
    - "overlap": mean similarity of the row to the rows of the other inducing points of the head on the same shape.
    - "consistency": mean similarity between the regions of an inducing point on two shapes of the same class. A region
      consists of the sums of attention in 4 x 4 x 4 cells.
    - "specificity": consistency minus the mean similarity of the region to the regions of the other inducing points of
      the head on another shape of the class. It is 0 without specialisation.
    - "stability": mean similarity of the rows of an inducing point on a shape and on the augmented shape, minus its
      mean similarity to the rows of the other inducing points on the augmented shape. It is 0 without specialisation.
    """

    def table(self, control: Specialisation | None = None, style: str = "simple") -> str:
        """Return a table of the median and range of each measure, with a second column for the untrained control."""
        columns = {"trained": self} if control is None else {"trained": self, "untrained": control}
        lines = []
        for name in self.measures:
            values = [column.measures[name] for column in columns.values()]
            cells = [f"{each.median():.3f} ({each.min():.3f} to {each.max():.3f})" for each in values]
            lines.append([name, *cells, DESCRIPTIONS[name]])
        return tabulate(lines, ["measure", *columns, "meaning"], tablefmt=style, disable_numparse=True)


def specialisation(
    model: nn.Module, sets: PointSets, layer: str | None = None, *, per_class: int = 8, seed: int = 0
) -> Specialisation:
    """Measure how the inducing points, or seeds, of one layer specialise, on a few shapes of each class.

    Attention on different shapes is compared by sums over the cells of a grid, so shapes should be aligned.

    Args:
        model: a model with ISABs, or with pooling by attention.
        sets: the dataset, of which the fixed and normalised subsets of points are used.
        layer: the name of a map of kind "reads" or "pools". None means the first such map. For a single seed, measures
            that compare seeds are NaN.
        per_class: number of shapes of each class. The first ones are used.
        seed: seed of the augmentation (random scaling and jitter).

    Returns:
        The measures of each head and inducing point.

    Raises:
        PointsetError: the model has neither inducing points nor seeds, the layer does not exist, or no class has two
            shapes.

    Example:
        >>> from pointset.explain.specialisation import specialisation, untrained
        >>> measured = specialisation(model, test, per_class=3)
        >>> measured.measures["entropy"].shape
        torch.Size([4, 4])
    """
    check("sets", sets, PointSets)
    by_label = [torch.nonzero(sets.labels == label)[:per_class, 0] for label in sets.labels.unique()]
    chosen = [some for some in by_label if len(some) > 1]
    if per_class < 2 or not chosen:
        raise PointsetError(f"{sets.name} has no class with two shapes: give more shapes, or per_class above 1")
    rows = torch.cat(chosen)
    points, labels = sets.points[rows], sets.labels[rows]
    mask = None if sets.mask is None else sets.mask[rows]
    augment = augmentation_from_names(("scale", "jitter"), sets.up)
    changed = augment(points, epoch_generator(seed, 0), mask, columns=sets.columns)
    real = (points.flatten(0, 1) if mask is None else points[mask])[:, :3]
    box, measured = (real.amin(dim=0), real.amax(dim=0)), []
    for batch in torch.arange(len(rows)).split(SHAPES_AT_ONCE):
        keep = None if mask is None else mask[batch]
        attention = _reads(model, points[batch], keep, layer)
        layer, weights = attention.layer, attention.weights
        moved = _reads(model, changed[batch], keep, layer).weights
        pair = _similarity(weights, weights), _similarity(weights, moved)
        measured.append((attention.entropy(), *pair, _regions(weights, points[batch], box)))
    entropy, alike, augmented, regions = (torch.cat(batches) for batches in zip(*measured, strict=True))
    by_class = zip(*(_between(regions[labels == label]) for label in labels.unique()), strict=True)
    same, other = (torch.stack(classes).mean(dim=0) for classes in by_class)
    steady = augmented.diagonal(dim1=-2, dim2=-1).mean(dim=0) - _off_diagonal(augmented).mean(dim=0)
    measures = {
        "entropy": entropy.mean(dim=0),
        "overlap": _off_diagonal(alike).mean(dim=0),
        "consistency": same,
        "specificity": same - other,
        "stability": steady,
    }
    return Specialisation(str(layer), len(rows), measures)


def untrained(model: nn.Module, seed: int = 1) -> nn.Module:
    """Return the control of a zoo model: the same architecture with new initial weights.

    Args:
        model: a zoo model, which is not changed.
        seed: number added to the seed of the model.

    Returns:
        A new model, in evaluation mode, with the same standardisation of local features.

    Raises:
        PointsetError: the model is not from the zoo.
    """
    spec = getattr(model, "spec", None)
    if not isinstance(spec, Spec):
        raise PointsetError(f"{type(model).__name__} is not a zoo model: build its untrained control yourself")
    control = build_model(dataclasses.replace(spec, seed=spec.seed + seed)).eval()
    if (numbers := getattr(model, "numbers", None)) is not None:
        control.get_submodule("numbers").load_state_dict(numbers.state_dict())
    return control


def _reads(model: nn.Module, points: Tensor, mask: Tensor | None, layer: str | None) -> AttentionMap:
    """Return the map of `layer` or, if `layer` is None, the first map of kind "reads" or "pools"."""
    maps = [each for each in record_maps(model, points, mask) if each.kind in ("reads", "pools")]
    if not maps:
        raise PointsetError("the model must have inducing points or seeds, as isab16-max or rff-pma have")
    return maps[0] if layer is None else find_map(maps, layer=layer)


def _regions(weights: Tensor, points: Tensor, box: tuple[Tensor, Tensor]) -> Tensor:
    """Return the sums of attention [B, h, m, cells] in the cells of a grid over the box. Padding has weight 0."""
    low, high = box
    index = ((points[..., :3] - low) / (high - low).clamp(min=1e-12) * CELLS).long().clamp(0, CELLS - 1)
    cell = (index[..., 0] * CELLS + index[..., 1]) * CELLS + index[..., 2]  # [B, n]
    into = torch.nn.functional.one_hot(cell, CELLS**3).to(weights.dtype)
    return torch.einsum("bhmn,bnc->bhmc", weights, into)


def _similarity(first: Tensor, second: Tensor) -> Tensor:
    """Return the similarities [..., m, m] (1 - total variation) between all rows [..., m, n] of two maps."""
    return 1 - torch.cdist(first, second, p=1.0) / 2


def _between(regions: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean similarities of regions [S, h, m, cells] on two shapes, first of one inducing point, then of two."""
    first, second = torch.combinations(torch.arange(len(regions))).T
    pairs = _similarity(regions[first], regions[second])
    return pairs.diagonal(dim1=-2, dim2=-1).mean(dim=0), _off_diagonal(pairs).mean(dim=0)


def _off_diagonal(similarity: Tensor) -> Tensor:
    """Return the mean [..., m] of each row of similarities [..., m, m] without the diagonal value, or NaN if m is 1."""
    others = similarity.shape[-1] - 1
    return (similarity.sum(dim=-1) - similarity.diagonal(dim1=-2, dim2=-1)) / others
