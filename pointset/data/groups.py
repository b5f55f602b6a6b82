"""Groups of shapes that belong together: views of one object, frames of one motion, copies. Folds keep them together.

A rule says which part of a name is the object: every way to cut a name at numbers and separators is one. Which rule is
true cannot be seen in the names: see `pointset.baselines.likeness`.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.data.catalogue.folders import SPLIT_FOLDERS
from pointset.errors import PointsetError, quoted
from pointset.runs.spreadsheets import read_csv

PARTS_CUT = 4
"""Most parts of a name that a rule keeps or drops."""
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


def _parts(names: Sequence[str], labels: Sequence[int]) -> list[Parts]:
    """The numbers and words of each name, without those with which all names of its class begin, and without splits."""
    texts = [_SUFFIX.sub("", name.casefold()) for name in names]
    parts = [tuple(part for part in _PART.findall(text) if part not in SPLIT_FOLDERS) for text in texts]
    common: dict[int, Parts] = {}
    for label, own in zip(labels, parts, strict=True):
        common[label] = tuple(_shared(common.get(label, own), own))
    return [own[min(len(common[label]), len(own) - 1) :] for label, own in zip(labels, parts, strict=True)]


def _shared(first: Parts, second: Parts) -> Iterator[str]:
    for one, other in zip(first, second, strict=False):
        if one != other:
            return
        yield one


def _rules(longest: int) -> Iterator[tuple[str, Callable[[Parts], Any]]]:
    """What a rule takes for the object, in words and as a function of the parts of a name."""
    yield "the whole name", lambda parts: parts
    yield "its words", lambda parts: tuple(part for part in parts if not part.isdigit())
    yield "its numbers", lambda parts: tuple(part for part in parts if part.isdigit())
    yield "all up to its last number", _up_to_last_number
    for count in range(1, min(PARTS_CUT, longest - 1) + 1):
        yield f"all but its last {count} parts", lambda parts, n=count: parts[:-n]
        yield f"all but its first {count} parts", lambda parts, n=count: parts[n:]
        yield f"its first {count} parts", lambda parts, n=count: parts[:n]
        yield f"its last {count} parts", lambda parts, n=count: parts[-n:]
        yield f"all but part {count}", lambda parts, n=count: parts[: n - 1] + parts[n:]
        yield f"all but part {count} from the end", lambda parts, n=count: parts[:-n] + parts[len(parts) - n + 1 :]


def _up_to_last_number(parts: Parts) -> Parts:
    last = max((place for place, part in enumerate(parts) if part.isdigit()), default=len(parts) - 1)
    return parts[: last + 1]


def given_groups(groups: str, names: Sequence[str], folder: Path | None = None) -> Groups:
    """The groups that a user names.

    Args:
        groups: a table (*.csv) whose first column has the files and whose second their groups; the number of a level
            of folders, counted from 1 at the top; or a regular expression, whose parentheses, or else the whole match,
            are the group.
        names: of the shapes, relative to their folder.
        folder: in which a relative path of a table is looked for, too.

    Raises:
        PointsetError: it is none of these, or does not say the group of every shape.
    """
    if groups.lower().endswith(".csv"):
        keys = _from_table(Path(groups), names, folder)
    elif groups.isdigit():
        keys = ["/".join(PurePosixPath(name).parts[: int(groups)]) for name in names]
    else:
        keys = _from_expression(groups, names)
    odd = [name for name, key in zip(names, keys, strict=True) if not key]
    if odd:
        raise PointsetError(f"groups={quoted(groups)} does not say the group of {quoted(odd[0])}: give all shapes one")
    return number_groups(keys)


def _from_table(path: Path, names: Sequence[str], folder: Path | None) -> list[str]:
    table = read_csv(path if path.exists() or folder is None else folder / path)
    if not table or len(table[0]) < 2:
        raise PointsetError(f"{path} must have two columns, file and group, and a row for each shape")
    file, group, *_ = table[0]
    known: dict[str, str] = {}
    for row in table:
        known[row[file]] = row[group]
    return [known.get(name, known.get(PurePosixPath(name).name, "")) for name in names]


def _from_expression(groups: str, names: Sequence[str]) -> list[str]:
    try:
        found = [re.search(groups, name) for name in names]
    except re.error as error:
        raise PointsetError(f"groups={quoted(groups)} is not a regular expression: {error}") from error
    return ["" if match is None else "/".join(map(str, match.groups() or match[:1])) for match in found]
