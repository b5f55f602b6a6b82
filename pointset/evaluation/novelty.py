"""Detection of shapes unlike the training shapes (out-of-distribution detection): two scores, a threshold, and AUROC.

A classifier that knows only furniture classifies an airplane as a piece of furniture, often with a high probability.
Both scores are larger for less familiar shapes and need no training. They do not tell why a shape is unfamiliar.

"energy" is minus the logarithm of the sum of exponentials of the logits: Liu et al., arXiv 2010.03759, at their
temperature of 1, as in CIFAR/test.py of their code. "distance" is the squared Mahalanobis distance of what the last
layer gets to the nearest class's mean, under one covariance for all classes: Lee et al., arXiv 1807.03888, as in
lib_generation.py of their code, of the last layer alone and without their change of the input; and the covariance is
shrunk (Ledoit and Wolf 2004), since units that are always 0 in training would otherwise count for nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays
from torch import nn

from pointset.data.dataset import PointSets
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.zoo.predicting import Prediction, predict
from pointset.zoo.pretrained import StrangerScore, Unlike

BELOW = 0.95
"""Share of held-out shapes whose score is below the threshold."""
MEANS = "unlike.safetensors"
"""File with the class means, beside the weights of a model that scores by distance."""


@dataclass(frozen=True, eq=False)
class ClassMeans:
    """Class means of the training shapes, in the input space of the last layer."""

    means: Float[ndarray, "classes width"]
    precision: Float[ndarray, "width width"]
    """Inverse of the covariance, which all classes share."""

    @classmethod
    def fit(cls, rows: Float[ndarray, "shapes width"], labels: Int[ndarray, " shapes"]) -> "ClassMeans":
        """Of training shapes; a class without one has no mean.

        Raises:
            PointsetError: there is no shape.
        """
        from sklearn.covariance import LedoitWolf

        if not len(rows):
            raise PointsetError("class means need at least 1 training shape, got 0")
        present, places = np.unique(labels, return_inverse=True)
        means = np.stack([rows[labels == label].mean(axis=0) for label in present])
        fitted = LedoitWolf(assume_centered=True).fit(rows.astype(np.float64) - means[places])
        return cls(means.astype(np.float32), fitted.precision_.astype(np.float32))

    def distances(self, rows: Float[ndarray, "shapes width"]) -> Float[ndarray, " shapes"]:
        """Squared Mahalanobis distance of each row to the nearest mean."""
        apart = rows[:, None].astype(np.float64) - self.means  # [shapes, classes, width]
        return np.einsum("scw,wv,scv->sc", apart, self.precision, apart, optimize=True).min(axis=1)


@dataclass(frozen=True, eq=False)
class Detector:
    """Detects shapes unlike the training shapes, from the outputs of a model."""

    threshold: float
    means: ClassMeans | None = None
    """For scoring by distance; None scores by energy."""

    @property
    def score(self) -> StrangerScore:
        """What it goes by."""
        return "energy" if self.means is None else "distance"

    def scores(self, prediction: Prediction) -> Float[ndarray, " shapes"]:
        """The larger, the stranger; the shape is unlike those of training above `threshold`.

        Raises:
            PointsetError: the score needs the rows of the last layer, and the prediction has none.
        """
        if self.means is None:
            return energy(prediction.logits.cpu().numpy())
        if prediction.last_rows is None:
            raise PointsetError("the model has no last linear layer: score strange shapes by energy")
        return self.means.distances(prediction.last_rows.cpu().numpy())


@dataclass(frozen=True)
class Measured:
    """How well a score separates unfamiliar shapes from test shapes."""

    detector: Detector
    flagged: float
    """Share of test shapes above the threshold."""
    auroc: dict[str, float]
    """AUROC by set of unfamiliar shapes: the probability that such a shape has a larger score than a test shape."""
    found: dict[str, float]
    """Share above the threshold, by set of unfamiliar shapes."""

    def as_dict(self) -> dict[str, Any]:
        """As plain data, for JSON and a card's `unlike`."""
        detector = {"score": self.detector.score, "threshold": self.detector.threshold}
        return detector | {"flagged": self.flagged, "auroc": self.auroc, "found": self.found}


def energy(logits: Float[ndarray, "shapes classes"]) -> Float[ndarray, " shapes"]:
    """-log(sum(exp(logits))) of each shape, in double precision."""
    from scipy.special import logsumexp

    return -logsumexp(logits.astype(np.float64), axis=1)


def fit_threshold(scores: Float[ndarray, " shapes"], below: float = BELOW) -> float:
    """The threshold: this share of held-out shapes has a smaller score.

    Raises:
        PointsetError: there is no shape.
    """
    if not len(scores):
        raise PointsetError("a threshold is fitted on held-out shapes, got 0: train with --validation 0.1")
    return float(np.quantile(scores, below))


def auroc(own: Float[ndarray, " shapes"], strange: Float[ndarray, " others"]) -> float:
    """Area under the ROC curve of scores that should be larger for unfamiliar shapes: 0.5 is chance, 1 is perfect."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(np.repeat([0, 1], [len(own), len(strange)]), np.concatenate([own, strange])))


def measure_strangers(
    model: nn.Module, train: PointSets, held_out: PointSets, test: PointSets, strangers: Mapping[str, PointSets]
) -> dict[StrangerScore, Measured]:
    """Fit both scores on the data of a model, and measure how well they detect unfamiliar shapes.

    Args:
        model: trained on `train`.
        train: gives the means of the classes.
        held_out: gives the thresholds; not trained on.
        test: neither.
        strangers: by name, sets of shapes whose classes the model does not know.
    """
    fitted, threshold_of, own = (predict(model, sets, last_rows=True) for sets in (train, held_out, test))
    strange = {name: predict(model, sets, last_rows=True) for name, sets in strangers.items()}
    found: dict[StrangerScore, Measured] = {}
    means_of_classes = (
        None if fitted.last_rows is None else ClassMeans.fit(fitted.last_rows.cpu().numpy(), train.labels.numpy())
    )
    for means in dict.fromkeys((None, means_of_classes)):
        plain = Detector(0.0, means)
        detector = Detector(fit_threshold(plain.scores(threshold_of)), means)
        test_scores = detector.scores(own)
        by_name = {name: detector.scores(prediction) for name, prediction in strange.items()}
        found[detector.score] = Measured(
            detector,
            flagged=float((test_scores > detector.threshold).mean()),
            auroc={name: auroc(test_scores, scores) for name, scores in by_name.items()},
            found={name: float((scores > detector.threshold).mean()) for name, scores in by_name.items()},
        )
    return found


def save_means(folder: Path, means: ClassMeans) -> None:
    """Write them beside a model's weights."""
    digests.write(folder / MEANS, save_arrays({"means": means.means, "precision": means.precision}))


def load_detector(unlike: Unlike, folder: Path) -> Detector:
    """What the card of a trained model says.

    Args:
        unlike: of the card.
        folder: of the model's weights.

    Raises:
        PointsetError: the card scores by distance, and the means are missing or damaged.
    """
    if unlike.score == "energy":
        return Detector(unlike.threshold)
    return Detector(unlike.threshold, digests.parse(folder / MEANS, _parse_means, "means", "install pointset again"))


def _parse_means(content: bytes) -> ClassMeans:
    return ClassMeans(**load_arrays(content))
