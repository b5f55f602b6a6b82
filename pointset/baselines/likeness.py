"""Which shapes are siblings: groups that names suggest, and that the shapes themselves confirm."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from pointset.baselines.features import InvariantFeatures
from pointset.baselines.models import batches_of_one_size
from pointset.baselines.twins import Surface, fit_surfaces
from pointset.data.batches import fixed_batches
from pointset.data.groups import Groups, group_sizes, groups_by_rule, number_groups
from pointset.data.point_sets import PointSets
from pointset.runs.progress import followed

AGREEMENT, DEVIATIONS = 0.25, 5.0
"""A rule is confirmed if so many shapes more than by chance have a sibling as their nearest shape, as a share of those
that chance leaves, and so many standard deviations more. See scripts/experiments/siblings.py."""
AS_GOOD = 0.8
"""Share of the best agreement at which a rule with more groups is taken instead."""
FEWEST = 8
"""Shapes with siblings from which a rule can be confirmed."""


LIKENESS = "likeness"
"""The rule of groups that were found without names."""
SAME_SHAPE = 0.95
NEIGHBOURS, FITTED, TRIED, COMMON = 12, 4, 60, 0.35
"""Nearest shapes that are compared with each shape, as they lie and at the best fit; shapes from which it is judged whether there are twins without
telling names, and the share of them that must have one."""


@dataclass(frozen=True)
class Siblings:
    """Groups of shapes, and why."""

    groups: Groups
    rule: str
    """What the group is in a name, such as "all but its last part"; empty if no rule is confirmed."""
    agreement: float = 0.0
    """How many shapes have a sibling as their nearest, from 0 (as many as by chance) to 1 (all)."""


def invariant_rows(sets: PointSets, progress: bool = False) -> Float[ndarray, "N width"]:
    """One row for each shape, which turns do not change; near rows are similar shapes."""
    extract, rows = InvariantFeatures(), []
    with torch.inference_mode():
        batches = fixed_batches(sets.normalized("none"), 64)
        for batch in followed(batches, "comparing shapes", "batch", -(-len(sets) // 64), show=progress):
            rows += [extract(cloud[..., :3].float()) for cloud in batches_of_one_size(batch.points, batch.mask)]
    return torch.cat(rows).numpy() if rows else np.zeros((0, InvariantFeatures.width), np.float32)


def find_siblings(names: Sequence[str], labels: Sequence[int], rows: Float[ndarray, "N width"]) -> Siblings:
    """The groups that a rule about names gives and likeness confirms; otherwise every shape is alone.

    A rule is confirmed if shapes have a sibling as their nearest shape of the class far more often than by chance. Of
    rules that are about as good, that with the smallest groups is taken; then coarser ones (families of objects), if
    they also hold for shapes and the nearest shape of another group.
    """
    candidates = groups_by_rule(names, labels)
    found = Siblings(np.arange(len(names)), "")
    while True:
        nearest = nearest_elsewhere(rows, np.asarray(labels), found.groups)[:, 0]
        agreements = {
            rule: _agreement(groups, found.groups, np.asarray(labels), nearest)
            for rule, groups in candidates.items()
            if _is_coarser(groups, found.groups)
        }
        best = max(agreements.values(), default=0.0)
        good = [rule for rule, agreement in agreements.items() if agreement >= max(AS_GOOD * best, AGREEMENT)]
        if not good:
            return found
        rule = max(good, key=lambda name: candidates[name].max())
        found = Siblings(candidates[rule], rule, agreements[rule])


def _is_coarser(groups: Groups, finer: Groups) -> bool:
    """True if every one of the finer groups lies in one of these, and these are fewer."""
    joined = number_groups(zip(groups.tolist(), finer.tolist(), strict=True))
    return bool(joined.max(initial=0) == finer.max(initial=0) > groups.max(initial=0))


def nearest_elsewhere(rows: Float[ndarray, "N width"], labels: ndarray, groups: Groups, count: int = 1) -> ndarray:
    """The nearest shapes of the same class and of other groups, int64 [N, count]; -1 where there are no more."""
    nearest = np.full((len(rows), count), -1)
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        own = torch.from_numpy(rows[inside])
        for some in np.split(inside, range(1024, len(inside), 1024)):
            distances = torch.cdist(torch.from_numpy(rows[some]), own)
            distances[torch.from_numpy(groups[some][:, None] == groups[inside])] = torch.inf
            values, places = distances.topk(min(count, len(inside)), largest=False)
            nearest[some, : values.shape[1]] = np.where(values.isinf().numpy(), -1, inside[places.numpy()])
    return nearest


def _agreement(groups: Groups, finer: Groups, labels: ndarray, nearest: Groups) -> float:
    """How far more often than by chance the nearest shape of another finer group is in the same group; 0 if not sure."""
    others = np.bincount(labels)[labels] - group_sizes(finer)
    siblings = group_sizes(groups) - group_sizes(finer)
    tested = (nearest >= 0) & (siblings > 0) & (siblings < others)
    chance = siblings[tested] / others[tested]
    if tested.sum() < FEWEST:
        return 0.0
    more = float((groups[nearest[tested]] == groups[tested]).sum() - chance.sum())
    spread = float((chance * (1 - chance)).sum()) ** 0.5
    return more / float((1 - chance).sum()) if more > DEVIATIONS * spread else 0.0


def find_twins(sets: PointSets, rows: Float[ndarray, "N width"]) -> Siblings:
    """Groups of shapes that show one surface, whatever their names; shapes are alone if twins are rare.

    Shapes are compared as they lie in their files, so that views may show different parts of an object; and, if that
    finds few, whole and at the best fit.
    """
    alone, whole = Siblings(np.arange(len(sets)), ""), sets.normalized("none")
    near = nearest_elsewhere(rows, sets.labels.numpy(), alone.groups, NEIGHBOURS)
    limit = same_shape_distance(sets)

    @cache
    def surface(row: int) -> Surface:
        return Surface(whole.points[row, : whole.sizes[row], :3].numpy())

    def overlap(row: int, other: int) -> bool:
        return surface(row).overlaps(surface(other))

    def fit(row: int, other: int) -> bool:
        close = np.linalg.norm(rows[row] - rows[other]) <= limit
        return bool(close) and fit_surfaces(surface(row), surface(other)).is_same

    order = np.random.default_rng(0).permutation(len(sets)).tolist()
    for same, count in ((overlap, NEIGHBOURS), (fit, FITTED)):
        links: list[tuple[int, int]] = []
        for tried, row in enumerate(order):
            if tried == TRIED and len({first for first, _ in links}) < COMMON * TRIED:
                break
            links += [(row, other) for other in near[row, :count].tolist() if other >= 0 and same(row, other)]
        else:
            groups = connected(links, len(sets))
            if len({*sets.labels.tolist()}) <= groups.max() < len(sets) - 1:
                return Siblings(groups, LIKENESS)
    return alone


def connected(links: Sequence[tuple[int, int]], count: int) -> Groups:
    """The connected components of a graph with this number of nodes."""
    first, second = np.array(links, np.int64).reshape(-1, 2).T
    graph = coo_array((np.ones(len(links)), (first, second)), shape=(count, count))
    return number_groups(connected_components(graph, directed=False)[1].tolist())


def same_shape_distance(sets: PointSets) -> float:
    """The distance between rows that two samplings of one shape rarely exceed, from halves of the points of some."""
    some = sets.subset(np.random.default_rng(0).permutation(len(sets))[:TRIED].tolist()).normalized("none")
    halves = [
        torch.cat([InvariantFeatures()(some.points[row, half : some.sizes[row] : 2, :3][None]) for row in range(len(some))])
        for half in (0, 1)
    ]
    return float(np.quantile((halves[0] - halves[1]).norm(dim=1), SAME_SHAPE)) / 2**0.5
