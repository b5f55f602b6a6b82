"""Groups of shapes, such as views of one object or frames of one motion, which stay on one side of a split.

The user defines groups (`--groups`), or `groups_from_names` infers them from file names.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pointset.errors import PointsetError, counted, quoted

Groups = NDArray[np.int64]
"""Index of each shape's group, [N]."""
NO_GROUPS, BY_NAMES = "none", "names"
"""Values of `--groups`: "none" means no groups, "names" the groups of `name_key`, however implausible."""
FEWEST_GROUPS = 3
"""`groups_from_names` needs at least this number of groups in most classes."""
WHAT_GROUPS_TAKES = (
    "a CSV table of files and groups, a regular expression whose parentheses are the group, or the number of a folder "
    "level (1 is the top)"
)
_NUMBERED = re.compile(r"(.*(?<![^\W_])[^\W\d_]*)\d+([\W_]+[^\W\d_]*)*", re.DOTALL)
"""Matches a name whose last word with digits is a number, perhaps after letters. Its group 1 is the part before the
number."""
_SUFFIX = re.compile(r"\.[A-Za-z]\w*$")


@dataclass(frozen=True)
class Grouping:
    """Groups of shapes, and where they come from."""

    groups: Groups
    origin: Literal["none", "names", "given"] = "none"
    """"none" means that every shape is a separate group, "given" that the user defined groups."""
    example: str = ""
    """One inferred group and some of its files, for messages."""

    @property
    def count(self) -> int:
        """The number of groups."""
        return int(self.groups.max(initial=-1)) + 1

    def __bool__(self) -> bool:
        """Return True if shapes are grouped."""
        return self.origin != "none"

    def __str__(self) -> str:
        """Return the number of groups and their origin as text."""
        names = f"by file names without their last number, such as {self.example}"
        return f"{counted(self.count, 'group')} {names if self.origin == 'names' else 'that were given'}"


def alone(count: int) -> Grouping:
    """Return the grouping in which each of `count` shapes is a separate group."""
    return Grouping(np.arange(count))


def number_groups(keys: Iterable[Any]) -> Groups:
    """Return the group number of each shape from its key. Groups are numbered in order of first occurrence."""
    numbers: dict[Any, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], np.int64)


def name_key(name: str) -> str:
    """Return the part of a file name before its last number, such as Plot_47_Tree for Plot_47_Tree_84.laz.

    A number is a word of digits, or the digits after the letters of a word such as w02. If the last word with digits
    has neither form, as in hexadecimal names, the key is the whole name without its suffix.
    """
    stem = _stem(name)
    numbered = _NUMBERED.fullmatch(stem)
    return stem if numbered is None else numbered[1].rstrip("_-. ")


def end_in_numbers(names: Sequence[str]) -> bool:
    """Return True if most file names end in a number, so that several files may show one object."""
    ends = (bool(_NUMBERED.fullmatch(stem)) and stem[-1].isdecimal() for stem in map(_stem, names))
    return 2 * sum(ends) > len(names)


def _stem(name: str) -> str:
    return _SUFFIX.sub("", PurePosixPath(name).name)


def groups_from_names(names: Sequence[str], labels: Sequence[int]) -> Grouping:
    """Group the shapes of all classes by `name_key`, or each shape separately if the former groups are implausible.

    Groups are plausible if most shapes share a group with another shape, most classes have at least three groups, and
    no group of several shapes contains more than half of a class.
    """
    keys = [name_key(name) for name in names]
    sizes, of_class = Counter(keys), defaultdict[int, Counter[str]](Counter)
    for label, key in zip(labels, keys, strict=True):
        of_class[label][key] += 1
    classes = of_class.values()
    joined = sum(size for size in sizes.values() if size > 1)
    divided = sum(len(counts) >= FEWEST_GROUPS for counts in classes)
    small = all(max(counts.values()) <= max(1, counts.total() / 2) for counts in classes)
    if not (2 * joined > len(keys) and 2 * divided > len(classes) and small):
        return alone(len(keys))
    key = next(key for key in keys if sizes[key] > 1)
    files = [PurePosixPath(name).name for name, other in zip(names, keys, strict=True) if other == key]
    example = f"{quoted(key)} ({', '.join(files[:2])}{', ...' * (len(files) > 2)})"
    return Grouping(number_groups(keys), "names", example)


def group_keys(groups: str, names: Sequence[str]) -> list[str]:
    """Return the group of each file, or "" for a file without a group.

    Args:
        groups: the number of a level of folders, counted from 1 at the top; "names" for the groups of `name_key`; or a
            regular expression, whose capture group is the group. Without a capture group, it is the whole match.
        names: paths of the files relative to the folder of the data, [N].

    Raises:
        PointsetError: `groups` is not a regular expression.
    """
    if groups == BY_NAMES:
        return [name_key(name) for name in names]
    if groups.isdigit():
        return ["/".join(PurePosixPath(name).parts[: int(groups)]) for name in names]
    try:
        matches = [re.search(groups, name) for name in names]
    except re.error as error:
        raise PointsetError(f"groups={quoted(groups)} is not a regular expression: {error}") from error
    return ["" if match is None else "/".join(map(str, match.groups() or (match[0],))) for match in matches]
