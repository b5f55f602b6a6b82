"""Leakage: test shapes that are also training shapes, or that are in the groups of training shapes."""

import shlex

from pointset.data.cache.manifest import file_digests
from pointset.data.groups import BY_NAMES, name_key
from pointset.data.options import SPLITS
from pointset.data.point_sets import PointSets


def repeated_files(train: PointSets) -> tuple[str, ...]:
    """Return a sentence if test files in the folder of the training sets have the same bytes as training files.

    Only files of equal size are read. Shapes that share a file are not compared: see
    `pointset.data_quality.check_data`.
    """
    splits = {} if train.listing is None else train.listing.splits
    trained, tested = (
        [shape.path for shape in splits.get(split, []) if not shape.is_left_out and shape.path.exists()]
        for split in SPLITS
    )
    digests = file_digests([*trained, *tested])
    known = {*digests[: len(trained)]}
    count = sum(digest in known for digest in digests[len(trained) :])
    if not count:
        return ()
    return (
        f"{count:,} of {len(tested):,} test shapes are also training shapes, so the accuracy may be too high; "
        f"list them with `pointset data check {shlex.quote(train.source)}`",
    )


def divided_groups(train: PointSets) -> tuple[str, ...]:
    """Return a sentence if a class/file folder is split by files, so that test shapes are in groups of training shapes.

    These groups are inferred from file names, see `groups_from_names`. Groups that the user defines are kept whole.
    """
    if train.grouping.origin != "names" or train.listing is None or not train.listing.is_hashed:
        return ()
    trained = {name_key(name) for name in train.names}
    test = [shape for shape in train.listing.splits.get(SPLITS[1], []) if not shape.is_left_out]
    count = sum(name_key(shape.name) in trained for shape in test)
    if not count:
        return ()
    return (
        f"{count:,} of {len(test):,} test shapes are in groups of training shapes, such as {train.grouping.example}, "
        "because the folder is split by files: accuracy on new groups may be lower; "
        f"--groups {BY_NAMES} splits it by groups",
    )
