"""Labels that are probably wrong, by confident learning."""

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray


def label_margins(
    probabilities: Float[ndarray, "N classes"], labels: Int[ndarray, " N"]
) -> tuple[Float[ndarray, " N"], Int[ndarray, " N"]]:
    """How far the probability of the given class is above that of the likeliest other, and this other class."""
    rows, others = np.arange(len(labels)), probabilities.copy()
    others[rows, labels] = -np.inf
    return probabilities[rows, labels] - others.max(axis=1), others.argmax(axis=1)


def suspicious_labels(probabilities: Float[ndarray, "N classes"], labels: Int[ndarray, " N"]) -> Bool[ndarray, " N"]:
    """True for labels off the diagonal of the confident joint (Northcutt et al., *Confident learning*, JAIR 2021).

    A shape counts as one of class j if its held-out probability of j is at least the mean such probability of the
    shapes that are labelled j; of several such classes, as one of the likeliest.
    """
    classes = probabilities.shape[1]
    thresholds = np.array(
        [
            probabilities[labels == label, label].mean() if (labels == label).any() else np.inf
            for label in range(classes)
        ]
    )
    confident = np.where(probabilities >= thresholds, probabilities, -np.inf)
    return np.isfinite(confident.max(axis=1)) & (confident.argmax(axis=1) != labels)
