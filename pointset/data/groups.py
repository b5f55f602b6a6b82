"""Groups of shapes that belong together: views of one object, frames of one motion, copies. Folds keep them together.

A rule says which part of a name is the object: every way to cut a name at numbers and separators is one. Which rule is
true cannot be seen in the names: see `pointset.data.likeness.siblings`.
"""

import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError, quoted
from pointset.runs.spreadsheets import read_csv

PARTS_CUT = 4
"""Most parts of a name that a rule keeps or drops."""
MOST = 0.8
"""Share of the shapes that have a sibling by names which may tell groups."""
Groups = NDArray[np.int64]
"""The number of each shape's group, [N]."""
Parts = tuple[str, ...]
_PART = re.compile(r"\d+|[^\W\d_]+")
_SUFFIX = re.compile(r"\.[a-z]\w*$")


def number_groups(keys: Iterable[Any]) -> Groups:
    """Numbers of groups, counted from 0 in the order in which they occur, from one key for each shape."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def group_sizes(groups: Groups) -> Groups:
    """The number of shapes in each shape's group, [N]."""
    return np.bincount(groups)[groups] if len(groups) else groups


def choose_groups(members: Groups, groups: Groups, count: int) -> Groups:
    """The first members, at most `count`, that are whole groups and leave one; at least one group of two, if any.

    Members [M] are of one class, in random order, and indices into the groups [N] of all shapes.
    """
    of_group = {group: members[groups[members] == group] for group in dict.fromkeys(groups[members].tolist())}
    chosen, left = np.empty(0, np.int64), list(of_group.values())[:-1]
    for group in left if count > 0 else ():
        if len(chosen) + len(group) <= count or not len(chosen):
            chosen = np.append(chosen, group)
    return chosen


def assign_folds(groups: Groups, labels: Sequence[int], seed: int, folds: int) -> Groups:
    """The fold of each shape, from 0; -1 for the shapes of a class of one group, which cannot be held out.

    The shapes of a group share a fold, and every fold has about as many shapes of each class.
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
            known = assigned[groups == groups[members[place][0]]].max()  # by its shapes of another class
            fold = turn[filled[turn].argmin()] if known < 0 else known
            assigned[members[place]] = fold
            filled[fold] += len(members[place])
        start += len(members)
    return assigned


def groups_by_rule(names: Sequence[str], labels: Sequence[int]) -> dict[str, Groups]:
    """The different groupings that rules about names give, by the rule in words; every group is within a class.

    Rules that leave all shapes alone, or join all shapes of every class, are left out.
    """
    parts = _parts(names, labels)
    found: dict[bytes, tuple[str, Groups]] = {}
    for rule, cut in _rules(max(map(len, parts), default=0)):
        groups = number_groups((label, cut(own)) for label, own in zip(labels, parts, strict=True))
        if len({*labels}) < groups.max(initial=0) + 1 < len(groups):
            found.setdefault(groups.tobytes(), (rule, groups))
    return dict(found.values())


def may_tell_groups(names: Sequence[str], labels: Sequence[int]) -> str:
    """The rule that drops the last part, if names of one form then leave most shapes in several groups of a class."""
    rule = "all but its last 1 part"
    groups = groups_by_rule(names, labels).get(rule)
    if groups is None or len({*map(len, _parts(names, labels))}) > 1:
        return ""
    several = groups.max() + 1 >= 2 * len({*labels})
    return rule if several and (group_sizes(groups) > 1).mean() >= MOST else ""


def _parts(names: Sequence[str], labels: Sequence[int]) -> list[Parts]:
    """The numbers and words of each name, without those with which all names of its class begin."""
    texts = [_SUFFIX.sub("", name.casefold()) for name in names]
    parts = [tuple(_PART.findall(text)) for text in texts]
    common: dict[int, Parts] = {}
    for label, own in zip(labels, parts, strict=True):
        pairs = zip(common.get(label, own), own, strict=False)
        common[label] = tuple(part for part, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return [own[min(len(common[label]), len(own) - 1) :] for label, own in zip(labels, parts, strict=True)]


def _rules(longest: int) -> Iterator[tuple[str, Callable[[Parts], Any]]]:
    """What a rule takes for the object, in words and as a function of the parts of a name."""
    yield "the whole name", lambda parts: parts
    yield "its words", lambda parts: tuple(part for part in parts if not part.isdigit())
    yield "its numbers", lambda parts: tuple(part for part in parts if part.isdigit())
    yield "all up to its last number", _up_to_last_number
    for count in range(1, min(PARTS_CUT, longest - 1) + 1):
        parts = f"{count} part{'s' * (count > 1)}"
        yield f"all but its last {parts}", itemgetter(slice(None, -count))
        yield f"all but its first {parts}", itemgetter(slice(count, None))
        yield f"its first {parts}", itemgetter(slice(count))
        yield f"its last {parts}", itemgetter(slice(-count, None))
        yield f"all but part {count}", _without(count - 1)
        yield f"all but part {count} from the end", _without(-count)


def _without(place: int) -> Callable[[Parts], Parts]:
    return lambda parts: tuple(part for own, part in enumerate(parts) if own != place % max(len(parts), 1))


def _up_to_last_number(parts: Parts) -> Parts:
    last = max((place for place, part in enumerate(parts) if part.isdigit()), default=len(parts) - 1)
    return parts[: last + 1]


def group_keys(
    groups: str, names: Sequence[str], folder: Path | None = None, *, all_have_one: bool = True
) -> list[str]:
    """The name of each shape's group, as a user gives it; without `all_have_one` a shape may be alone, under its name.

    Groups are said by a table (*.csv) whose first column has the files and whose second their groups, which is looked
    for in the folder of the data, too; by the number of a level of folders, counted from 1 at the top; by a rule of
    `groups_by_rule` in words; or by a regular expression, whose parentheses, or else the whole match, are the group. A
    PointsetError if it is none of these, or does not say the group of every shape that must have one.
    """
    if is_table(groups):
        known = read_table(Path(groups), folder, "groups", 2)
        keys = [known.get(name, known.get(PurePosixPath(name).name, "")) for name in names]
    elif groups.isdigit():
        keys = ["/".join(PurePosixPath(name).parts[: int(groups)]) for name in names]
    elif cut := dict(_rules(PARTS_CUT + 1)).get(groups):
        places = [str(PurePosixPath(name).parent) for name in names]
        parts = _parts([PurePosixPath(name).name for name in names], number_groups(places).tolist())
        keys = [f"{place}/{'_'.join(cut(own))}" for place, own in zip(places, parts, strict=True)]
    else:
        keys = _from_expression(groups, names)
    odd = [name for name, key in zip(names, keys, strict=True) if not key]
    if odd and all_have_one:
        raise PointsetError(f"groups={quoted(groups)} does not say the group of {quoted(odd[0])}: give all shapes one")
    return [key or name for name, key in zip(names, keys, strict=True)]


def is_table(given: str) -> bool:
    """True for the path of a table."""
    return given.lower().endswith(".csv")


def read_table(path: Path, folder: Path | None, what: str, columns: int) -> dict[str, str]:
    """The first column of a table, and the last of so many; a PointsetError if it cannot be read or has fewer."""
    if not path.exists() and folder is not None:
        path, given = folder / path, path
        if not path.exists():
            where = f"it does not exist, neither here nor in {folder}"
            raise PointsetError(f"{what}={given} must be a table whose first column has files: {where}")
    try:
        return {cells[0]: cells[columns - 1] for cells in (list(row.values()) for row in read_csv(path))}
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise PointsetError(f"{what}={path} must be a table whose first column has files: {error}") from error


def _from_expression(groups: str, names: Sequence[str]) -> list[str]:
    try:
        found = [re.search(groups, name) for name in names]
    except re.error as error:
        raise PointsetError(f"groups={quoted(groups)} is not a regular expression: {error}") from error
    return ["" if match is None else "/".join(map(str, match.groups() or (match[0],))) for match in found]
