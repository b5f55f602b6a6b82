"""Test shapes that say little: files that were trained on, and siblings of training shapes, as views of one object."""

import shlex
from pathlib import Path

from pointset.data.cache.manifest import hash_source
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released
from pointset.data.dataset import keys_of_all_splits, list_again
from pointset.data.likeness.siblings import GIVEN, LIKENESS, named_groups
from pointset.data.options import SPLITS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import quoted

CONFIRMED = 300
"""Shapes of whole classes in which groups by names are confirmed: four seconds of work."""


def repeats_in_words(name_or_folder: str | Path, options: DataOptions) -> tuple[str, ...]:
    """A line that says so, if test shapes of a folder are training shapes too, with the same bytes.

    Only files of equal sizes are read. Releases are not examined: see `pointset.check_data`.
    """
    _, folder = locate_data(name_or_folder, progress=False)
    if is_released(folder):
        return ()
    listings = list_again(folder, options).items()
    files = {split: [shape.path for shape in listing.shapes if shape.path.exists()] for split, listing in listings}
    train, test = (files.get(split, []) for split in SPLITS)
    sizes = {path.stat().st_size for path in train} & {path.stat().st_size for path in test}
    trained = {hash_source(path) for path in train if path.stat().st_size in sizes}
    count = sum(path.stat().st_size in sizes and hash_source(path) in trained for path in test)
    if not count:
        return ()
    return (
        f"{count:,} of {len(test):,} test shapes are training shapes, too: accuracy says nothing about them; "
        f"see them with `pointset data check {shlex.quote(str(name_or_folder))}`",
    )


def siblings_in_words(train: PointSets, rule: str | None = None) -> tuple[str, ...]:
    """A line that says so, if a class/file folder is split by files and test shapes are siblings of training shapes.

    `rule` is that of their names, see `named_groups`; None looks for one among some of the training shapes.
    """
    rule = named_groups(train, enough=CONFIRMED).rule if rule is None else rule
    if rule in ("", GIVEN, LIKENESS):  # a split by given groups has none, and likeness compared training shapes alone
        return ()
    keys, own = keys_of_all_splits(train, rule), {*train.names}
    seen, tested = {keys[name] for name in own}, [key for name, key in keys.items() if name not in own]
    if not (count := sum(key in seen for key in tested)):
        return ()
    return (
        f"{count:,} of {len(tested):,} test shapes are siblings of training shapes by names ({rule}, confirmed by "
        "likeness), because the folder is split by files: their accuracy is of seen groups; for unseen ones, `train` "
        f"and `compare` split by groups with --groups {quoted(rule)}",
    )
