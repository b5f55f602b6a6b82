"""How reliable probabilities are: Brier score, expected calibration error, temperature scaling.

All are pure functions of logits [shapes, classes] and labels [shapes]. A prediction's confidence is its largest
probability; a classifier is calibrated if a share c of the predictions with confidence c is right.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from pointset.errors import PointsetError

BINS = 15
"""The usual number since Guo et al., arXiv 1706.04599."""
Edges = Literal["width", "mass"]


@dataclass(frozen=True, eq=False)
class Reliability:
    """Predictions in bins of confidence, for a reliability diagram; empty bins are left out."""

    confidence: Float[ndarray, " bins"]
    """Mean confidence of the bin."""
    accuracy: Float[ndarray, " bins"]
    """Share of the bin that is right."""
    share: Float[ndarray, " bins"]
    """Of all predictions; sums to 1."""

    @property
    def error(self) -> float:
        """Expected calibration error: mean of |accuracy - confidence| over bins, weighted by their shares."""
        return float(np.sum(self.share * np.abs(self.accuracy - self.confidence)))


def probabilities(logits: Float[ndarray, "shapes classes"], temperature: float = 1.0) -> ndarray:
    """Softmax of logits / temperature, in double precision [shapes, classes]."""
    from scipy.special import softmax

    return softmax(logits.astype(np.float64) / temperature, axis=1)


def brier_score(logits: Float[ndarray, "shapes classes"], labels: Int[ndarray, " shapes"]) -> float:
    """Mean squared distance between probabilities and the one-hot label, from 0 to 2 (Brier 1950)."""
    apart = probabilities(logits)
    apart[np.arange(len(labels)), labels] -= 1.0
    return float(np.square(apart).sum(axis=1).mean())


def reliability(
    logits: Float[ndarray, "shapes classes"],
    labels: Int[ndarray, " shapes"],
    edges: Edges = "width",
    bins: int = BINS,
) -> Reliability:
    """Sort predictions into bins of confidence.

    Args:
        logits: of the test shapes.
        labels: their classes.
        edges: "width" for bins of equal width on (0, 1], as in arXiv 1706.04599, eq. 3; "mass" for bins with equally
            many predictions, so that a few crowded bins do not decide the error (Nguyen and O'Connor 2015).
        bins: how many.

    Raises:
        PointsetError: there are no predictions, or no bins.
    """
    if not len(labels) or bins < 1:
        raise PointsetError(f"calibration needs at least 1 prediction and 1 bin, got {len(labels)} and {bins}")
    found = probabilities(logits)
    # Logits that differ by little can have the same probability, so the prediction is that of the logits.
    confidence, right = found.max(axis=1), logits.argmax(axis=1) == labels
    if edges == "width":
        place = np.clip(np.ceil(confidence * bins).astype(int) - 1, 0, bins - 1)
    else:
        place = np.empty(len(labels), dtype=int)
        place[np.argsort(confidence, kind="stable")] = np.arange(len(labels)) * bins // len(labels)
    counts = np.bincount(place, minlength=bins)
    full = counts > 0
    sums = (np.bincount(place, weights=values, minlength=bins)[full] for values in (confidence, right.astype(float)))
    mean_confidence, accuracy = (total / counts[full] for total in sums)
    return Reliability(mean_confidence, accuracy, counts[full] / len(labels))


def fit_temperature(logits: Float[ndarray, "shapes classes"], labels: Int[ndarray, " shapes"]) -> float:
    """The temperature T > 0 for which softmax(logits / T) has the smallest log loss (arXiv 1706.04599, section 4.2).

    Fit it on validation shapes, never on test shapes. It keeps the order of the logits, and with it every prediction.

    Raises:
        PointsetError: there are no shapes to fit on.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import logsumexp

    if not len(labels):
        raise PointsetError("a temperature is fitted on validation shapes, got 0: train with --validation 0.1")
    wide = logits.astype(np.float64)
    chosen = wide[np.arange(len(labels)), labels]

    def loss(log_temperature: float) -> float:
        scale = np.exp(-log_temperature)
        return float(np.mean(logsumexp(wide * scale, axis=1) - chosen * scale))

    found = minimize_scalar(loss, bounds=(np.log(1e-2), np.log(1e2)), method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))
