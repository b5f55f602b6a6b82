"""Features of all shapes of a dataset, and how much they differ between two samplings of one shape."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor

from pointset.baselines.models import Baseline
from pointset.data.point_sets import PointSets
from pointset.data_quality.reading import Shapes
from pointset.training.baselines import baseline_of, extract_rows, set_pose
from pointset.zoo.models import create_for

CLASSIFIER = "features+surface-svm"
"""The classifier whose features are compared, and whose out-of-fold probabilities are compared with the labels."""
TRIED, QUANTILE = 60, 0.95
"""Number of shapes of which two samplings are compared, and quantile of their distances."""


@dataclass(frozen=True)
class Features:
    """Features of N shapes, which translation and scale do not change."""

    baseline: Baseline
    blocks: list[Tensor]
    """What the baseline's head takes, each [N, views, width]."""

    @property
    def vectors(self) -> Float[ndarray, "N width"]:
        """Return one feature vector per shape."""
        return _joined(self.blocks)

    def sampling_distance(self, sets: PointSets) -> float:
        """Return a distance that two samplings of one shape rarely exceed: of two halves of the points of one shape."""
        some = sets.subset(np.random.default_rng(0).permutation(len(sets))[:TRIED].tolist()).normalized("none")
        clouds = [cloud[None, :size, :3] for cloud, size in zip(some.points, some.sizes, strict=True)]
        halves = [
            np.concatenate([_joined(self.baseline.blocks(cloud[:, half::2], None)) for cloud in clouds])
            for half in (0, 1)
        ]
        return float(np.quantile(np.linalg.norm(halves[0] - halves[1], axis=1), QUANTILE))


def shape_features(shapes: Shapes, progress: bool) -> Features:
    """Compute the features of all shapes."""
    baseline = baseline_of(create_for(shapes.sets[0], CLASSIFIER))
    assert baseline is not None
    set_pose(baseline, shapes.sets[0])
    of_splits = [extract_rows(baseline, sets, progress) for sets in shapes.sets]
    return Features(baseline, [torch.cat(parts) for parts in zip(*of_splits, strict=True)])


def _joined(blocks: list[Tensor]) -> Float[ndarray, "N width"]:
    return torch.cat([block[:, 0] for block in blocks], dim=1).numpy()
