"""Test shapes that are training shapes, too: files with the same bytes."""

import warnings
from pathlib import Path

from pointset.data.catalogue.folders import list_splits
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released
from pointset.data.options import DataOptions
from pointset.data.pools.shapes import hash_source


def repeated_shapes(name_or_folder: str | Path, options: DataOptions) -> tuple[int, int]:
    """How many test shapes of a folder are training shapes too, and how many test shapes there are.

    Only files of equal sizes are read. Releases are not examined: see `pointset.check_data`.
    """
    _, folder = locate_data(name_or_folder, progress=False)
    if is_released(folder):
        return 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # said when the data was loaded
        listings = list_splits(folder, seed=options.split_seed, groups=options.groups)
    train, test = (
        [shape.path for shape in listings[split].shapes if shape.path.exists()] if split in listings else []
        for split in ("train", "test")
    )
    sizes = {path.stat().st_size for path in train} & {path.stat().st_size for path in test}
    trained = {hash_source(path) for path in train if path.stat().st_size in sizes}
    return sum(path.stat().st_size in sizes and hash_source(path) in trained for path in test), len(test)


def repeats_in_words(name_or_folder: str, options: DataOptions) -> tuple[str, ...]:
    """A line that says so, if there are such shapes."""
    count, total = repeated_shapes(name_or_folder, options)
    if not count:
        return ()
    return (
        f"{count:,} of {total:,} test shapes are training shapes, too: accuracy says nothing about them; "
        f"see them with `pointset data check {name_or_folder}`",
    )
