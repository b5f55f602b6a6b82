"""Find possible label errors by confident learning (cleanlab) from out-of-fold probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import torch
from numpy import ndarray

from pointset.data.groups import alone, groups_from_names, number_groups
from pointset.data.splitting import assign_folds
from pointset.data_quality.reading import CLASSIFIER, Features, Shapes
from pointset.training.baselines import FOLDS, fit_head

ERRORS = 2.0
"""Number of standard errors by which the out-of-fold accuracy must exceed chance."""


@dataclass(frozen=True)
class LabelCheck:
    """Result of comparing labels with out-of-fold probabilities."""

    note: str
    """How the labels were checked, or why they were not checked."""
    errors: tuple[tuple[int, int, float], ...] = ()
    """Possible errors, the least likely label first: index of the shape, most likely other class, its probability."""


def check_labels(shapes: Shapes, features: Features, duplicates: Sequence[tuple[int, int]], seed: int) -> LabelCheck:
    """Find labels that may be wrong, by confident learning (Northcutt et al., *Confident learning*, JAIR 2021).

    Errors are ranked by the probability of the label in the data (self-confidence; Kuan and Mueller, *Model-agnostic
    label quality scoring to detect real-world label errors*, 2022). The probabilities of a shape come from a classifier
    that was fitted without the shape, its duplicates and its group (inferred from file names). If duplicates join all
    groups of a class, file names are ignored.
    """
    labels = shapes.labels
    of_names = groups_from_names(shapes.names, labels.tolist()).groups
    candidates = [_joined_groups(own, labels, duplicates) for own in (of_names, alone(len(labels)).groups)]
    drawn = [(own, assign_folds(own, labels.tolist(), seed, FOLDS)) for own in candidates]
    # Duplicates may join all groups of a class, which then cannot be held out.
    groups, folds = max(drawn, key=lambda pair: len(np.unique(labels[pair[1] >= 0])))
    tested = np.flatnonzero(folds >= 0)
    if len(np.unique(labels[tested])) < 2:
        return LabelCheck(
            "labels cannot be checked: fewer than two classes have two shapes that can be read and are not duplicates"
        )
    if find_spec("cleanlab") is None:
        return LabelCheck('labels are not checked, for lack of cleanlab: pip install "pointset-learn[cleanlab]"')
    classes, targets = np.unique(labels, return_inverse=True)
    logits = fit_head(features.baseline, features.blocks, torch.from_numpy(labels), folds, groups)[tested]
    probabilities = logits[:, torch.from_numpy(classes)].softmax(dim=1).double().numpy()
    targets = targets[tested]
    accuracy = float((probabilities.argmax(axis=1) == targets).mean())
    chance = np.bincount(targets).max() / len(targets)
    if accuracy <= chance + ERRORS * (chance * (1 - chance) / len(targets)) ** 0.5:
        return LabelCheck(
            f"labels cannot be checked: the out-of-fold accuracy of {CLASSIFIER}, {accuracy:.0%}, is at chance "
            f"({chance:.0%}, the share of the largest class)"
        )
    from cleanlab.filter import find_label_issues

    issues = find_label_issues(targets, probabilities, return_indices_ranked_by="self_confidence", n_jobs=1)
    others = probabilities.copy()
    others[np.arange(len(targets)), targets] = -1
    likeliest = others.argmax(axis=1)
    errors = tuple((int(tested[issue]), int(classes[likeliest[issue]]), float(others[issue].max())) for issue in issues)
    return LabelCheck(f"labels are checked with {CLASSIFIER} of {accuracy:.0%} out-of-fold accuracy", errors)


def _joined_groups(groups: ndarray, labels: ndarray, duplicates: Sequence[tuple[int, int]]) -> ndarray:
    """Return the groups of the shapes. Groups that are connected by duplicates of one class are joined."""
    from scipy.cluster.hierarchy import DisjointSet

    joined = DisjointSet(groups.tolist())
    for first, second in duplicates:
        if labels[first] == labels[second]:
            joined.merge(int(groups[first]), int(groups[second]))
    return number_groups(joined[group] for group in groups.tolist())
