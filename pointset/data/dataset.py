"""Load a dataset by name or from a folder, as point sets."""

import dataclasses
import shlex
import warnings
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from pointset.configuration import check
from pointset.data.axes import axis_of_dataset
from pointset.data.cache.build import load_cache
from pointset.data.cache.manifest import CachePlan
from pointset.data.catalogue.cards import Card
from pointset.data.catalogue.file_tables import is_table, read_rows, rows_by_file, saved_frame
from pointset.data.catalogue.folders import Listing, groups_of, list_folder
from pointset.data.catalogue.locate import check_against_card, home, locate_data, require_classes
from pointset.data.catalogue.released import is_released, read_released, released_labels
from pointset.data.groups import NO_GROUPS
from pointset.data.options import SPLITS, TABLES, DataOptions
from pointset.data.point_cache import PointCache
from pointset.data.point_sets import PointSets
from pointset.errors import REPEATED, PointsetError, one_line, quoted


def load_dataset(
    name_or_folder: str | Path,
    split: str = "train",
    points: int = 1024,
    *,
    data_seed: int = 0,
    progress: bool = True,
    **options: Any,
) -> PointSets:
    """Load one split of a dataset as sets of points.

    Args:
        name_or_folder: the name (a str) of a dataset in `home()/datasets`, see `list_cards`, or the path of a folder.
            The folder has meshes or clouds (see `read_mesh`, `read_cloud`) as class/split/file, split/class/file or
            class/file, or the published files of ModelNet40 (HDF5), ScanObjectNN or ModelNet40-C. "shapes10" is
            generated on first use.
        split: name of the split, such as "train" or "test".
        points: number of points per set. A cloud with fewer is used whole; batches are then padded and masked.
        data_seed: seed of the points sampled on meshes, and of the fixed subset of points of each set.
        progress: show progress while points are sampled: a bar on a terminal, otherwise a line every half minute.
        options: other fields of `DataOptions`. With features="normals", for example, each point has 6 numbers. `labels`
            may also be a pandas DataFrame with the columns "file" and "label".

    Returns:
        The sets. Each is normalised separately: by default it is centred and scaled so that its farthest point has
            distance 1.

    Warns:
        UserWarning: shapes that cannot be used are left out (on_error="skip"), or a class occurs only in train or only
            in test.

    Raises:
        UnreadableShapesError: shapes cannot be used. All shapes are checked, and `failures` names every bad one.
        PointsetError: the name is unknown; the data is missing, damaged or in an unknown layout; or an option is wrong.

    Example:
        >>> for split in ("train", "test"):
        ...     Path("parts", split, "bolt").mkdir(parents=True)
        ...     np.save(f"parts/{split}/bolt/one.npy", X[0])
        >>> parts = pointset.load_dataset("parts", split="test", points=16)
        >>> parts.points.shape, parts.classes
        (torch.Size([1, 16, 3]), ['bolt'])
    """
    check("split", split, str)
    if hasattr(options.get("labels"), "to_csv"):
        options["labels"] = saved_frame(options["labels"], home() / "tables")
    chosen = DataOptions.from_dict({"points": points, "data_seed": data_seed, **options})
    return load_split(name_or_folder, split, chosen, progress=progress)


def load_split(
    data: str | Path,
    split: str,
    options: DataOptions,
    *,
    progress: bool = True,
    fewer: bool = False,
    classes: Sequence[str] | None = None,
    trained: bool = False,
    now: str | None = None,
    listing: Listing | None = None,
) -> PointSets:
    """Load one split of a dataset; see `load_dataset` for arguments and errors.

    With `fewer`, if every shape has fewer than `options.points` points, sets have the size of the largest shape, with a
    warning. With `classes`, data with other classes are refused before shapes are sampled. With `trained`, `options.up`
    is the upward axis of a model's training data. Shapes are rotated to this axis from their upward direction `now`, by
    default the usual one of their format. With a `listing`, the folder is not listed again.
    """
    card, folder = locate_data(data, progress=progress)
    options = _with_absolute_tables(options)
    listing = listing or list_data(folder, options)
    cache, present = _folder_cache(folder, card, split, options, listing, progress, classes)
    _warn_of_missing_classes(folder, cache, split, present)
    name, source = (card.name, card.name) if card else (folder.name, str(folder))
    if not trained:
        axis = axis_of_dataset(options.up, card.up if card else None, cache.names, folder)
        options = dataclasses.replace(options, **axis)
    cache = cache.rotated([now or options.usual_up(shape) for shape in cache.names], options.up)
    group_of, left_out = _groups_and_left_out(folder, split, options, listing, cache.names)
    rows: Tensor | None = None
    if options.without is not None:
        rows = torch.tensor([row for row, shape in enumerate(cache.names) if shape not in left_out], dtype=torch.int64)
        if len(cache) and not len(rows):
            fault = f"without={quoted(options.without)} leaves out all {len(cache):,} {split} shapes of {folder}"
            raise PointsetError(f"{fault}: delete from that table the rows of shapes to keep")
    _require_classes(cache.classes, classes, name)
    largest = int(cache.sizes.max(initial=0))
    if fewer and 0 < largest < options.points:
        warnings.warn(f"{name} has at most {largest} points per shape, and its sets have as many", stacklevel=2)
        options = dataclasses.replace(options, points=largest)
    sets = PointSets(cache, options, name=name, source=source, split=split, rows=rows)
    if group_of:
        sets = sets.grouped([group_of[shape] for shape in sets.names])
    sets.listing = listing
    return sets


def check_data(data: str | Path, options: DataOptions) -> None:
    """Raise a PointsetError, before slow work, if a dataset does not exist or a table of the options is unreadable."""
    _, folder = locate_data(data)
    for option, path in _tables(options).items():
        read_rows(option, path, folder)


def _tables(options: DataOptions) -> dict[str, Path]:
    """Return the path of each table that an option names, by option."""
    texts = {option: getattr(options, option) for option in TABLES}
    return {option: Path(text) for option, text in texts.items() if text and (option != "groups" or is_table(text))}


def _with_absolute_tables(options: DataOptions) -> DataOptions:
    """Return options with absolute paths of tables, except for paths relative to the folder of the data."""
    here: dict[str, Any] = {option: str(path.resolve()) for option, path in _tables(options).items() if path.exists()}
    return dataclasses.replace(options, **here)


def list_data(folder: Path, options: DataOptions) -> Listing | None:
    """Return the files of a folder's shapes; None if shapes share files, such as ModelNet40's HDF5 files."""
    if not is_released(folder):
        return list_folder(folder, **options.listing)
    if options.labels is not None:
        raise PointsetError(f"{folder} is a release, with labels in its files: leave labels={options.labels} out")
    return None


def _groups_and_left_out(
    folder: Path, split: str, options: DataOptions, listing: Listing | None, names: list[str]
) -> tuple[dict[str, str], Set[str]]:
    """Return the group of each shape by name, if the options define groups, and the names of shapes to leave out."""
    if listing is not None:
        shapes = listing.of(split)
        return {shape.name: shape.group for shape in shapes if shape.group}, {
            shape.name for shape in shapes if shape.is_left_out
        }
    group_of, left_out = {}, set[str]()
    if options.groups not in (None, NO_GROUPS):
        group_of = groups_of(str(options.groups), names, folder, names if split == SPLITS[0] else (), complete=False)
    if options.without is not None:
        left_out = {*rows_by_file("without", Path(options.without), folder, names, complete=False)}
    return group_of, left_out


def _folder_cache(
    folder: Path,
    card: Card | None,
    split: str,
    options: DataOptions,
    listing: Listing | None,
    progress: bool,
    classes: Sequence[str] | None,
) -> tuple[PointCache, dict[str, frozenset[int]]]:
    """Return the point cache of one split of a folder, and the labels that occur in each split."""
    if listing is None:
        return _released_cache(folder, card, split, options)
    if options.variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={quoted(options.variant)} out")
    check_against_card(listing.classes, len(listing.of(split)), card, split, folder)
    further = f", or predict the known classes with `pointset classify {shlex.quote(str(folder))}` and the same --model"
    _require_classes(listing.classes, classes, str(folder), further)
    if listing.kind == "meshes" and options.points > options.cache_points:  # before they are sampled
        raise PointsetError(
            f"points={options.points} is more than the {options.cache_points} points sampled on each mesh of {folder}: "
            f"ask for at most {options.cache_points} (--points {options.cache_points}), or sample more with "
            "cache_points (--cache-points of `train` and `compare`)"
        )
    if listing.kind == "clouds":
        _require_no_sampling(folder, options)
    elif options.further:
        raise PointsetError(
            f"{folder} has meshes, whose only feature is normals: leave {', '.join(options.further)} out"
        )
    labels = {name: frozenset(shape.label for shape in shapes) for name, shapes in listing.splits.items()}
    return load_cache(CachePlan(listing, split, options), on_error=options.on_error, progress=progress), labels


def _released_cache(
    folder: Path, card: Card | None, split: str, options: DataOptions
) -> tuple[PointCache, dict[str, frozenset[int]]]:
    _require_no_sampling(folder, options)
    if wanted := ", ".join(options.features):
        raise PointsetError(f"{folder} holds points without {wanted}: leave {wanted} out")
    cache = read_released(folder, split, options.variant, on_error=options.on_error)
    shapes = None if cache.skipped else len(cache)
    check_against_card(cache.classes, shapes, card, split, folder, options.variant)
    others = [name for name in SPLITS if name != split]
    return cache, {name: frozenset(released_labels(folder, name, options.variant).tolist()) for name in others}


def _require_classes(present: Sequence[str], wanted: Sequence[str] | None, name: str, further: str = "") -> None:
    if wanted is not None:
        require_classes(present, wanted, name, "the model was trained on", f"give data with the same classes{further}")


def _warn_of_missing_classes(folder: Path, cache: PointCache, split: str, present: Mapping[str, Set[int]]) -> None:
    """Warn if a class occurs only in train or only in test."""
    labels = {**present, split: set(cache.labels.tolist())}
    if not all(labels.get(name) for name in SPLITS):
        return
    reasons = []
    for name, other in (SPLITS, SPLITS[::-1]):
        if missing := sorted(labels[name] - labels[other]):
            reasons.append(f"only in {name}: {one_line(', '.join(map(cache.classes.__getitem__, missing)), REPEATED)}")
    if reasons:
        warnings.warn(f"{folder} has classes {', '.join(reasons)}", UserWarning, stacklevel=4)


def _require_no_sampling(folder: Path, options: DataOptions) -> None:
    if options.sampler != "uniform":
        raise PointsetError(f"{folder} holds sampled points already: leave sampler={options.sampler!r} out")
