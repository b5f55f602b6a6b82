"""Leakage: test shapes that are training shapes too, or are of groups that training shapes have."""

import shlex
from pathlib import Path

from pointset.data.cache.manifest import hash_source
from pointset.data.catalogue.cards import is_on_disk
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released
from pointset.data.groups import BY_NAMES, name_key
from pointset.data.options import SPLITS, DataOptions
from pointset.data.point_sets import PointSets
from pointset.data.reload import list_again


def repeated_files(name_or_folder: str | Path, options: DataOptions) -> tuple[str, ...]:
    """Return a sentence if test shapes of a folder are training shapes too, with the same bytes.

    Only files of equal sizes are read. Releases are not examined: see `pointset.data_quality.check_data`.
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


def divided_groups(train: PointSets) -> tuple[str, ...]:
    """Return a sentence if a class/file folder is split by files, and test shapes have groups of training shapes.

    Groups are those of file names, see `groups_from_names`; a split by given groups divides none.
    """
    if train.grouping.origin != "names" or not is_on_disk(train.source):
        return ()
    _, folder = locate_data(train.source, progress=False)
    if is_released(folder):
        return ()
    test = list_again(folder, train.options).get(SPLITS[1])
    trained = {name_key(name) for name in train.names}
    count = sum(name_key(shape.name) in trained for shape in test.shapes) if test else 0
    if not test or not count or not test.is_hashed:
        return ()
    return (
        f"{count:,} of {len(test.shapes):,} test shapes have groups of training shapes, such as "
        f"{train.grouping.example}, because the folder is split by files: accuracy on new groups may be lower; "
        f"--groups {BY_NAMES} splits it by groups",
    )
