"""Calibration: Brier score, expected calibration error, temperature scaling.

All functions take logits [shapes, classes] and labels [shapes]. The confidence of a prediction is its largest
probability. A classifier is calibrated if, for every c, a share c of its predictions with confidence c is correct.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from pointset.errors import PointsetError

BINS = 15
"""Default number of bins, as in Guo et al., arXiv 1706.04599."""
Edges = Literal["width", "mass"]
Objective = Literal["log loss", "calibration error"]
TEMPERATURES = (1e-2, 1e2)
"""Minimum and maximum of fitted temperatures."""
STEPS = 401
"""Number of temperatures tried for the calibration error, evenly spaced on a logarithmic scale. The middle one is 1."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of confidence, for a reliability diagram. Empty bins are left out."""

    confidence: Float[ndarray, " bins"]
    """Mean confidence of the bin."""
    accuracy: Float[ndarray, " bins"]
    """Accuracy of the bin."""
    share: Float[ndarray, " bins"]
    """Share of all predictions in the bin; the shares sum to 1."""

    @property
    def error(self) -> float:
        """Expected calibration error: mean of |accuracy - confidence| over bins, weighted by their shares."""
        return float(np.sum(self.share * np.abs(self.accuracy - self.confidence)))


def probabilities(logits: Float[ndarray, "shapes classes"], temperature: float = 1.0) -> ndarray:
    """Return softmax(logits / temperature) in double precision.

    Args:
        logits: logits [shapes, classes].
        temperature: T > 0. Probabilities are more uniform for larger T.

    Returns:
        Probabilities [shapes, classes], which sum to 1 for each shape.
    """
    return torch.from_numpy(logits.astype(np.float64) / temperature).softmax(dim=1).numpy()


def brier_score(logits: Float[ndarray, "shapes classes"], labels: Int[ndarray, " shapes"]) -> float:
    """Return the mean squared distance between probabilities and one-hot labels (Brier 1950).

    Args:
        logits: logits [shapes, classes].
        labels: the true classes [shapes].

    Returns:
        A number from 0 (the best) to 2.
    """
    apart = probabilities(logits)
    apart[np.arange(len(labels)), labels] -= 1.0
    return float(np.square(apart).sum(axis=1).mean())


def reliability(
    logits: Float[ndarray, "shapes classes"], labels: Int[ndarray, " shapes"], edges: Edges = "width", bins: int = BINS
) -> Reliability:
    """Sort predictions into bins of confidence.

    The bins have equal width on (0, 1] (arXiv 1706.04599, eq. 3), or equal mass, with equal numbers of predictions
    (Nguyen and O'Connor 2015).

    Args:
        logits: logits [shapes, classes].
        labels: the true classes [shapes].
        edges: "width" or "mass".
        bins: number of bins.

    Returns:
        Confidence, accuracy and share of predictions of each bin, and the expected calibration error.

    Raises:
        PointsetError: if there is no prediction, or no bin.
    """
    if not len(labels) or bins < 1:
        raise PointsetError(f"calibration needs at least 1 prediction and 1 bin, got {len(labels)} and {bins}")
    shares = probabilities(logits)
    # Slightly different logits can have the same probability, so the predicted class is computed from the logits.
    confidence, right = shares.max(axis=1), logits.argmax(axis=1) == labels
    if edges == "width":
        bin_of = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    else:
        bin_of = np.empty(len(labels), dtype=int)
        bin_of[np.argsort(confidence, kind="stable")] = np.arange(len(labels)) * bins // len(labels)
    counts = np.bincount(bin_of, minlength=bins)
    full = counts > 0
    sums = (np.bincount(bin_of, weights=values, minlength=bins)[full] for values in (confidence, right.astype(float)))
    mean_confidence, accuracy = (total / counts[full] for total in sums)
    return Reliability(mean_confidence, accuracy, counts[full] / len(labels))


def fit_temperature(
    logits: Float[ndarray, "shapes classes"],
    labels: Int[ndarray, " shapes"],
    objective: Objective = "log loss",
    groups: Int[ndarray, " shapes"] | None = None,
) -> float:
    """Return the temperature T in [0.01, 100] that minimises the objective of softmax(logits / T) on validation shapes.

    A temperature does not change predicted classes (arXiv 1706.04599, section 4.2). The calibration error has 15 bins
    of equal mass and is not continuous in T, so the best of 401 temperatures is returned, and of several best ones the
    nearest to 1. With few shapes, this objective overfits, and the log loss is safer.

    If all n predictions are correct, both objectives are minimal at probabilities of 1. The mean confidence is
    therefore limited to (n + 1) / (n + 2), the probability that the next prediction is correct too (Laplace's rule of
    succession). With `groups` (views of one object), n is the number of groups, because their predictions are not
    independent.

    Args:
        logits: logits of validation shapes, [shapes, classes].
        labels: the true classes [shapes].
        objective: "log loss" or "calibration error".
        groups: the group of each shape, [shapes], or None.

    Returns:
        The temperature.

    Raises:
        PointsetError: if there are no shapes.
    """
    from scipy.optimize import brentq

    if not len(labels):
        raise PointsetError("a temperature is fitted on validation shapes, got 0: train with --validation 0.1")
    logits = logits.astype(np.float64)
    fitted = _least_error(logits, labels) if objective == "calibration error" else _least_loss(logits, labels)
    highest = TEMPERATURES[1]
    count = len(labels) if groups is None else len(np.unique(groups))

    def excess(temperature: float) -> float:
        return float(probabilities(logits, temperature).max(axis=1).mean()) - (count + 1) / (count + 2)

    if excess(fitted) <= 0:
        return fitted
    return highest if excess(highest) >= 0 else float(brentq(excess, fitted, highest))


def _least_error(logits: Float[ndarray, "shapes classes"], labels: Int[ndarray, " shapes"]) -> float:
    tried = sorted(np.geomspace(*TEMPERATURES, STEPS).tolist(), key=lambda temperature: abs(np.log(temperature)))
    return min(tried, key=lambda temperature: reliability(logits / temperature, labels, "mass").error)


def _least_loss(logits: Float[ndarray, "shapes classes"], labels: Int[ndarray, " shapes"]) -> float:
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    true = logits[np.arange(len(labels)), labels]

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float(np.mean(logsumexp(logits * scale, axis=1) - true * scale))

    minimum = minimize_scalar(loss, bounds=np.log(TEMPERATURES), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(minimum.x))
