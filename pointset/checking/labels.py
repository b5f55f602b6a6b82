"""Labels that are perhaps wrong, by confident learning."""

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray


def given_and_other(
    probabilities: Float[ndarray, "N classes"], labels: Int[ndarray, " N"]
) -> tuple[Float[ndarray, " N"], Int[ndarray, " N"]]:
    """The held-out probability of the given class, and the likeliest other class.

    This probability ranks labels (self-confidence; Kuan and Mueller, *Model-agnostic label quality scoring to detect
    real-world label errors*, 2022). The margin to the other class instead puts shapes between two similar classes
    before those that are like no class, as shapes of a wrong class often are.
    """
    rows, others = np.arange(len(labels)), probabilities.copy()
    others[rows, labels] = -np.inf
    return probabilities[rows, labels], others.argmax(axis=1)


def suspicious_labels(probabilities: Float[ndarray, "N classes"], labels: Int[ndarray, " N"]) -> Bool[ndarray, " N"]:
    """True for labels off the diagonal of the confident joint, and for those of which another class is likelier.

    For the confident joint (Northcutt et al., *Confident learning*, JAIR 2021) a shape counts as one of class j if its
    held-out probability of j is at least the mean such probability of the shapes that are labelled j, and that of
    chance; of several such classes, as one of the likeliest.
    """
    classes = probabilities.shape[1]
    thresholds = np.array(
        [
            probabilities[labels == label, label].mean() if (labels == label).any() else np.inf
            for label in range(classes)
        ]
    )
    thresholds = thresholds.clip(1 / classes)  # a class that looks wrong throughout makes no others doubtful
    confident = np.where(probabilities >= thresholds, probabilities, -np.inf)
    off_diagonal = np.isfinite(confident.max(axis=1)) & (confident.argmax(axis=1) != labels)
    return off_diagonal | (probabilities.argmax(axis=1) != labels)
