"""Which shapes are siblings: groups that names suggest, and that the shapes themselves confirm."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from pointset.data.batches import fixed_batches
from pointset.data.groups import Groups, group_sizes, groups_by_rule, number_groups
from pointset.data.likeness.features import invariant_features
from pointset.data.likeness.twins import OVERLAP, Surface, fit_surfaces
from pointset.data.point_sets import PointSets
from pointset.data.ragged import batches_of_one_size
from pointset.runs.progress import followed

AGREEMENT, BY_CHANCE = 0.25, 1e-3
"""A rule is confirmed if so many shapes more than by chance have a sibling as their nearest shape, as a share of those
that chance leaves, and chance would give as many with less than this probability. See
scripts/experiments/siblings.py."""
AS_GOOD = 0.8
"""Share of the best agreement at which a rule with more groups is taken instead."""
SURE = 10.0
"""How sure a rule must be (see `_agreement`) that is confirmed only among shapes which another rule keeps apart."""
FEWEST = 8
"""Shapes with siblings from which a rule can be confirmed."""
LIKENESS, GIVEN = "likeness", "given"
"""The rules of groups that were found without names, and that the data has."""
ENOUGH = 2000
"""Shapes of whole classes in which a rule is confirmed."""
SAME_SHAPE, LEAST = 0.95, 0.01
"""Quantile of the distances of two samplings of one shape, and a distance that rounding does not reach."""
NEIGHBOURS, FITTED = 24, 4
"""Nearest shapes with which each shape is compared, as they lie and at the best fit."""
TRIED, COMMON = 60, 0.35
"""Shapes from which it is judged whether there are twins without telling names; the share that must have one."""
LARGEST = 3
"""Times the median number of shapes of a group that others may have, if likeness alone finds them."""
Rows = Float[ndarray, "N width"]
Link = tuple[float, int, int]
"""How far two shapes are from one surface, and both."""


@dataclass(frozen=True)
class Siblings:
    """Groups of shapes, and why."""

    groups: Groups
    rule: str
    """What the group is in a name, such as "all but its last part"; empty if no rule is confirmed."""
    agreement: float = 0.0
    """How many shapes have a sibling as their nearest, from 0 (as many as by chance) to 1 (all)."""

    @property
    def count(self) -> int:
        """The number of groups."""
        return int(self.groups.max(initial=-1)) + 1

    @property
    def origin(self) -> str:
        """Where the groups are from, in words."""
        names = f"names ({self.rule}), confirmed by likeness"
        return {LIKENESS: LIKENESS, GIVEN: "--groups", "": "nothing"}.get(self.rule, names)


def invariant_rows(sets: PointSets, progress: bool = False) -> Rows:
    """One row for each shape, at least one, which turns do not change; near rows are similar shapes."""
    batches = fixed_batches(sets.normalized("none"), 64)
    shown = followed(batches, "comparing shapes", "shape", len(sets), show=progress, size=lambda one: len(one.labels))
    with torch.inference_mode():
        clouds = (cloud for batch in shown for cloud in batches_of_one_size(batch.points, batch.mask))
        return torch.cat([invariant_features(cloud[..., :3].float()) for cloud in clouds]).numpy()


def find_groups(sets: PointSets, progress: bool = False, rows: Rows | None = None) -> Siblings:
    """The groups that the data has; or else those of names and likeness, or of likeness where most shapes are alone.

    The `rows` are those of `invariant_rows`, if they are known.
    """
    named = named_groups(sets, progress, rows=rows)
    if len(sets) < 2 or named.rule == GIVEN or (group_sizes(named.groups) > 1).mean() >= 0.5:
        return named
    twins = find_twins(sets, invariant_rows(sets, progress) if rows is None else rows)
    return twins if twins.rule else named


def named_groups(sets: PointSets, progress: bool = False, enough: int = ENOUGH, rows: Rows | None = None) -> Siblings:
    """The groups that the data has, or that a rule about names gives and `enough` shapes of some classes confirm."""
    if sets.groups is not None:
        return Siblings(number_groups(sets.groups.tolist()), GIVEN)
    alone, labels = Siblings(np.arange(len(sets)), ""), sets.labels.numpy()
    if not groups_by_rule(sets.names, labels.tolist()):
        return alone
    some, order = np.empty(0, np.int64), np.random.default_rng(0).permutation(np.unique(labels))
    for label in order:
        if len(some) < enough:
            some = np.append(some, np.flatnonzero(labels == label))
    some.sort()
    part = sets.subset(torch.from_numpy(some))
    known = invariant_rows(part, progress) if rows is None else rows[some]
    found = find_siblings(part.names, part.labels.tolist(), known)
    groups = groups_by_rule(sets.names, labels.tolist()).get(found.rule)
    return alone if groups is None else Siblings(groups, found.rule, found.agreement)


def split_validation(sets: PointSets, fraction: float, seed: int) -> tuple[PointSets, PointSets]:
    """Training and validation sets; shapes that belong together by their names are on one side."""
    named = named_groups(sets)
    return (sets.grouped(named.groups) if named.rule else sets).split_validation(fraction, seed)


def find_siblings(names: Sequence[str], labels: Sequence[int], rows: Rows) -> Siblings:
    """The groups that a rule about names gives and likeness confirms; otherwise every shape is alone.

    A rule is confirmed if shapes have a sibling as their nearest shape of the class far more often than by chance. Of
    rules that are about as good, that with the smallest groups is taken; then coarser ones (families of objects), if
    they also hold for shapes and the nearest shape of another group. If all objects are seen from the same sides, those
    of one side are alike, too: rules that divide each other's groups are also judged among shapes which the other keeps
    apart, and the surer one is taken.
    """
    groups, classes = {"": np.arange(len(names)), **groups_by_rule(names, labels)}, np.asarray(labels)

    @cache
    def nearest(apart: str) -> Groups:
        return nearest_elsewhere(rows, classes, groups[apart])[:, 0]

    @cache
    def agreement(rule: str, apart: str) -> tuple[float, float]:
        return _agreement(groups[rule], groups[apart], classes, nearest(apart))

    def crossing(rule: str) -> list[str]:
        nested = {rule, *(one for one in coarser if _is_coarser(groups[one], groups[rule]))}
        return [one for one in coarser if one not in nested and not _is_coarser(groups[rule], groups[one])]

    found, agreed = "", 0.0
    while True:
        coarser = [rule for rule in groups if _is_coarser(groups[rule], groups[found])]
        least = max([AGREEMENT, *(AS_GOOD * agreement(rule, found)[0] for rule in coarser)])
        good = {rule: agreement(rule, found)[0] for rule in coarser if agreement(rule, found)[0] >= least}
        if not good:
            judged = [(rule, *agreement(rule, other)) for rule in coarser for other in crossing(rule)]
            good = {rule: own for rule, own, sure in judged if own >= AGREEMENT and sure >= SURE}
        if not good:
            return Siblings(groups[found], found, agreed)
        rule = max(good, key=lambda name: int(groups[name].max()))
        surer = [other for other in crossing(rule) if agreement(other, rule)[1] > agreement(rule, other)[1]]
        found, agreed = rule, good[rule]
        if surer:
            found = max(surer, key=lambda other: agreement(other, rule)[1])
            agreed = agreement(found, rule)[0]


def _is_coarser(groups: Groups, finer: Groups) -> bool:
    """True if every one of the finer groups lies in one of these, and these are fewer."""
    count = finer.max(initial=0) + 1
    return bool(groups.max(initial=0) + 1 < count == len(np.unique(groups * count + finer)))


def nearest_elsewhere(rows: Rows, labels: ndarray, groups: Groups, count: int = 1) -> ndarray:
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


def _agreement(groups: Groups, others: Groups, labels: ndarray, nearest: Groups) -> tuple[float, float]:
    """How much more often than by chance the nearest shape of another one of the `others` is in the same group.

    And how sure that is: minus the logarithm of the probability that chance gives as many (Chernoff's bound), where a
    group counts once, because its shapes are not independent. Zeros if it may be chance.
    """
    from scipy.special import bdtrc, rel_entr

    both = number_groups(zip(groups.tolist(), others.tolist(), strict=True))
    elsewhere = np.bincount(labels)[labels] - group_sizes(others)
    siblings = group_sizes(groups) - group_sizes(both)
    tested = (nearest >= 0) & (siblings > 0) & (2 * siblings <= elsewhere)  # most of a class do not make a group
    if tested.sum() < max(FEWEST, (siblings > 0).sum() / 2):
        return 0.0, 0.0
    chance, found = siblings[tested] / elsewhere[tested], int((groups[nearest[tested]] == groups[tested]).sum())
    # two shapes that are each other's nearest are one event, so half of the shapes are counted
    count, usual, share = int(tested.sum()) // 2, chance.mean(), found / tested.sum()
    if found <= 1 or bdtrc(found // 2 - 1, count, usual) >= BY_CHANCE:
        return 0.0, 0.0
    sure = len(np.unique(groups[tested])) * (rel_entr(share, usual) + rel_entr(1 - share, 1 - usual))
    return float((found - chance.sum()) / (1 - chance).sum()), float(sure)


def find_twins(sets: PointSets, rows: Rows) -> Siblings:
    """Groups of shapes that show one surface, whatever their names; shapes are alone if twins are rare.

    Shapes are compared as they lie in their files, so that views may show different parts of an object, or whole and at
    the best fit: whichever finds more among some of the shapes.
    """
    alone, whole = Siblings(np.arange(len(sets)), ""), sets.normalized("none")
    near = nearest_elsewhere(rows, sets.labels.numpy(), alone.groups, NEIGHBOURS)
    limit = resampled_distance(sets)

    @cache
    def surface(row: int) -> Surface:
        return Surface(whole.points[row, : whole.sizes[row], :3].numpy())

    def pairs(some: list[int], count: int) -> list[tuple[int, int]]:
        return [(row, other) for row in some for other in near[row, :count].tolist() if other >= 0]

    def overlapping(some: list[int]) -> list[Link]:
        found = ((surface(row).overlap(surface(other)), row, other) for row, other in pairs(some, NEIGHBOURS))
        return [link for link in found if link[0] <= OVERLAP]

    def fitting(some: list[int]) -> list[Link]:
        alike = [pair for pair in pairs(some, FITTED) if np.linalg.norm(np.subtract(*rows[[*pair]])) <= limit]
        found = ((fit_surfaces(surface(row), surface(other)), row, other) for row, other in alike)
        return [(fit.distance, row, other) for fit, row, other in found if fit.is_same]

    order = np.random.default_rng(0).permutation(len(sets)).tolist()
    linked = {links: len({row for _, row, _ in links(order[:TRIED])}) for links in (overlapping, fitting)}
    links = max(linked, key=lambda way: linked[way])
    if linked[links] < COMMON * min(TRIED, len(sets)):
        return alone
    joined = [(row, other) for _, row, other in sorted(links(order))]
    sizes = np.bincount(connected(joined, len(sets)))
    # None far larger than most: shapes of a class that are all alike are no group.
    groups = connected(joined, len(sets), most=LARGEST * float(np.median(sizes[sizes > 1])))
    return Siblings(groups, LIKENESS) if len({*sets.labels.tolist()}) <= groups.max() < len(sets) - 1 else alone


def connected(links: Sequence[tuple[int, int]], count: int, most: float = np.inf) -> Groups:
    """The connected components of a graph with this number of nodes, without links that make one larger than `most`."""
    from scipy.cluster.hierarchy import DisjointSet

    joined = DisjointSet(range(count))
    for first, second in links:
        if joined.connected(first, second) or joined.subset_size(first) + joined.subset_size(second) <= most:
            joined.merge(first, second)
    return number_groups(joined[node] for node in range(count))


def resampled_distance(sets: PointSets) -> float:
    """The distance between rows that two samplings of one shape rarely exceed, from halves of the points of some."""
    some = sets.subset(np.random.default_rng(0).permutation(len(sets))[:TRIED].tolist()).normalized("none")
    clouds = [cloud[None, :size, :3] for cloud, size in zip(some.points, some.sizes, strict=True)]
    halves = [torch.cat([invariant_features(cloud[:, half::2]) for cloud in clouds]) for half in (0, 1)]
    return max(float(np.quantile((halves[0] - halves[1]).norm(dim=1), SAME_SHAPE)) / 2**0.5, LEAST)
