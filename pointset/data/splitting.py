"""Divide shapes into training and held-out shapes. The shapes of a group stay on one side."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.data.groups import Groups
from pointset.errors import PointsetError

VALIDATION_STREAM = 1
"""Makes the random numbers of a validation split independent of other uses of the same seed."""


def hold_out(
    groups: Sequence[Any], labels: Sequence[Any], order: Iterable[int], count: Callable[[int], int]
) -> set[Any]:
    """Choose groups to hold out, class by class. Every class keeps a group, even if groups span several classes.

    In each class, several groups are held out that together have at most `count` shapes, or one larger group.

    Args:
        groups: the group of each shape, [N].
        labels: the class of each shape, [N].
        order: indices of the shapes in the order in which their groups are tried.
        count: a function from the size of a class to the number of its shapes to hold out.

    Returns:
        The groups to hold out.
    """
    sizes: dict[Any, Counter[Any]] = defaultdict(Counter)
    """Number of shapes of each group, by class."""
    classes_of: dict[Any, set[Any]] = defaultdict(set)
    for index in order:
        sizes[labels[index]][groups[index]] += 1
        classes_of[groups[index]].add(labels[index])
    held: set[Any] = set()
    kept = {label: len(of_class) for label, of_class in sizes.items()}
    for of_class in sizes.values():
        wanted = count(of_class.total())
        chosen = sum(of_class[group] for group in held if group in of_class)
        for group, size in of_class.items():
            if chosen >= wanted:
                break
            fits = chosen + size <= wanted or not chosen
            if group not in held and fits and all(kept[label] > 1 for label in classes_of[group]):
                held.add(group)
                chosen += size
                for label in classes_of[group]:
                    kept[label] -= 1
    return held


def held_for_validation(groups: Groups, labels: NDArray[np.int64], fraction: float, seed: int) -> NDArray[np.bool_]:
    """Return a mask [N], True for the shapes of a validation split; see `PointSets.split_validation`."""
    rng, known = np.random.default_rng((seed, VALIDATION_STREAM)), range(int(labels.max(initial=-1)) + 1)
    order = [row for label in known for row in rng.permutation(np.flatnonzero(labels == label)).tolist()]
    chosen = hold_out(groups.tolist(), labels.tolist(), order, lambda size: round(fraction * size))
    held = np.isin(groups, [*chosen])
    if not held.any():
        alone = all(len(np.unique(groups[labels == label])) < 2 for label in known)
        remedy = "every class has one shape, or one group: give more" if alone else "give a larger fraction"
        raise PointsetError(f"fraction={fraction} of {len(labels)} shapes holds out no shape: {remedy}")
    return held


def assign_folds(groups: Groups, labels: Sequence[int], seed: int, folds: int) -> Groups:
    """Return the fold of each shape, counted from 0, or -1 if the shape's class has one group, which is never held out.

    The shapes of a group are in one fold, and all folds have about the same number of shapes of each class.
    """
    generator, assigned, start = np.random.default_rng(seed), np.full(len(groups), -1), 0
    for label in np.unique(np.asarray(labels)):
        inside = np.flatnonzero(np.asarray(labels) == label)
        members = [inside[groups[inside] == group] for group in dict.fromkeys(groups[inside].tolist())]
        if len(members) == 1:
            continue
        filled = np.zeros(folds, np.int64)
        order = sorted(generator.permutation(len(members)).tolist(), key=lambda place: -len(members[place]))
        for place in order:
            turn = np.roll(np.arange(folds), -start)
            earlier = assigned[groups == groups[members[place][0]]].max()  # fold of the group's shapes in other classes
            fold = turn[filled[turn].argmin()] if earlier < 0 else earlier
            assigned[members[place]] = fold
            filled[fold] += len(members[place])
        start += len(members)
    return assigned
