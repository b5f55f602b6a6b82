"""Held-out parts of the training shapes, class by class, with siblings kept together."""

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

SIBLING = re.compile(r"(.*\d)[_\-. ].*")


def assign_folds(names: Sequence[str], labels: Sequence[int], folds: int, seed: int) -> NDArray[np.int64]:
    """The fold of each shape, from 0; -1 for a shape that is never held out, because its class would have none left.

    Shapes whose names agree up to a number and differ after it ("bolt_12", "bolt_12_b", "bolt_12.turned") are siblings
    and share a fold, unless all shapes of their class would.
    """
    generator = np.random.default_rng(seed)
    members: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index, (name, label) in enumerate(zip(names, labels, strict=True)):
        members[label][sibling_key(name)].append(index)
    assigned = np.full(len(names), -1)
    start = 0
    for label in sorted(members):
        groups = list(members[label].values())
        if len(groups) == 1:
            groups = [[index] for index in groups[0]]
        if len(groups) == 1:
            continue
        for position, group in enumerate(generator.permutation(len(groups))):
            assigned[groups[group]] = (start + position) % folds
        start += len(groups)
    return assigned


def sibling_key(name: str) -> str:
    """The part of a file's name that siblings share."""
    stem = PurePath(name).stem
    match = SIBLING.fullmatch(stem)
    return match[1] if match else stem
