"""Load a dataset by name or from a folder, as point sets; load data as an earlier run did."""

import dataclasses
import shlex
import warnings
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pointset.configuration import check
from pointset.data.axes import Axis, check_up, rotate_up, usual_up
from pointset.data.cache.build import CachePlan, load_cache
from pointset.data.cache.manifest import Sampling
from pointset.data.catalogue.cards import Card, is_on_disk, list_cards, load_card
from pointset.data.catalogue.file_tables import is_table, read_rows, rows_by_file, saved_frame
from pointset.data.catalogue.folders import Listing, groups_of, list_folder, list_splits
from pointset.data.catalogue.locate import check_against_card, home, locate_data, require_classes
from pointset.data.catalogue.released import is_released, read_released, released_labels
from pointset.data.groups import NO_GROUPS, number_groups
from pointset.data.options import MORE_POINTS, SPLITS, TABLES, DataOptions
from pointset.data.point_cache import PointCache
from pointset.data.point_sets import PointSets
from pointset.data.preparation import Preparation, warn_of_rotation
from pointset.data.readers.formats import suffix_of
from pointset.data.unusable import OnError
from pointset.errors import REPEATED, PointsetError, one_line, quoted, raise_together


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
        name_or_folder: a dataset's name, as str (see `list_cards`), whose data is expected in `home()/datasets`; or a
            folder with meshes or clouds (see `read_mesh`, `read_cloud`) as class/split/file, split/class/file
            or class/file, or in a released layout (ModelNet40's HDF5 files, ScanObjectNN, ModelNet40-C). "shapes10" is
            generated on first use.
        split: "train" or "test" (any split that a class/split/file folder has).
        points: points per set, n; smaller clouds give all their points, and batches are padded and masked.
        data_seed: seed of the caches and of the fixed subsets.
        progress: show progress while caches are sampled: a bar on a terminal, otherwise a line every half minute.
        options: other fields of `DataOptions`, such as features="normals", which makes every point a row of 6 numbers;
            `labels` may also be a pandas DataFrame with the columns "file" and "label".

    Returns:
        The sets. Each is normalised on its own, by default to a largest distance of 1 from its centre.

    Warns:
        UserWarning: shapes that cannot be used are left out (on_error="skip"), or a class occurs in only one of train
            and test.

    Raises:
        UnreadableShapesError: shapes cannot be used; all shapes are checked, and `failures` names every bad one.
        PointsetError: the name is unknown, the data is missing, damaged or in no known layout, or an option is wrong.

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
) -> PointSets:
    """Load one split of a dataset with these options; arguments and errors as for `load_dataset`.

    With `fewer`, sets have as many points as there are, with a warning, where no shape has `options.points`. Data with
    other `classes` than a model was trained on are refused, before shapes are sampled.
    """
    card, folder = locate_data(data, progress=progress)
    options = _with_absolute_tables(options)
    listing = _listing(folder, split, options)
    cache, present = _folder_cache(folder, card, split, options, listing, progress, classes)
    _warn_of_missing_classes(folder, cache, split, present)
    name, source = (card.name, card.name) if card else (folder.name, str(folder))
    options = with_axis(options, cache.names, card, folder)
    cache = on_one_axis(cache, options)
    group_of, left_out = _groups_and_left_out(folder, split, options, listing, cache.names)
    if group_of:
        cache = dataclasses.replace(cache, groups=number_groups(group_of[name] for name in cache.names))
    rows: Tensor | None = None
    if options.without is not None:
        rows = torch.tensor([row for row, shape in enumerate(cache.names) if shape not in left_out], dtype=torch.int64)
        if len(cache) and not len(rows):
            fault = f"without={quoted(options.without)} leaves out all {len(cache):,} {split} shapes of {folder}"
            raise PointsetError(f"{fault}: delete the rows of shapes to keep from that table")
    if (options.normalize, options.up) == ("upright-axes", "y"):
        options = dataclasses.replace(options, normalize="upright-axes-y")
    _require_classes(cache.classes, classes, name)
    largest = int(cache.sizes.max(initial=0))
    if fewer and 0 < largest < options.points:
        warnings.warn(f"{name} has at most {largest} points of a shape: its sets have as many", stacklevel=2)
        options = dataclasses.replace(options, points=largest)
    return PointSets(cache, options, name=name, source=source, split=split, rows=rows)


def check_data(data: str | Path, options: DataOptions) -> None:
    """Raise a PointsetError if a dataset does not exist, or a table of the options cannot be read: before slow work."""
    _, folder = locate_data(data)
    raise_together(*(partial(read_rows, option, path, folder) for option, path in _tables(options).items()))


def _tables(options: DataOptions) -> dict[str, Path]:
    """The paths of tables in the options."""
    texts = {option: getattr(options, option) for option in TABLES}
    return {option: Path(text) for option, text in texts.items() if text and (option != "groups" or is_table(text))}


def _with_absolute_tables(options: DataOptions) -> DataOptions:
    """Options whose tables are found from any working directory; those in the folder of the data stay relative."""
    here: dict[str, Any] = {option: str(path.resolve()) for option, path in _tables(options).items() if path.exists()}
    return dataclasses.replace(options, **here)


def _listing(folder: Path, split: str, options: DataOptions) -> Listing | None:
    """The files of a folder; None for a release."""
    if not is_released(folder):
        return list_folder(folder, split, **options.listing)
    if options.labels is not None:
        raise PointsetError(f"{folder} is a release whose files hold labels: leave labels={options.labels} out")
    return None


def _groups_and_left_out(
    folder: Path, split: str, options: DataOptions, listing: Listing | None, names: list[str]
) -> tuple[dict[str, str], Set[str]]:
    """The groups that are given, by the name of the shape, and the names of shapes to leave out."""
    if listing is not None:
        group_of = {shape.name: shape.group for shape in listing.shapes if shape.group}
        return group_of, {shape.name for shape in listing.shapes if shape.is_left_out}
    group_of, left_out = {}, set[str]()
    if options.groups not in (None, NO_GROUPS):
        group_of = groups_of(str(options.groups), names, folder, names if split == SPLITS[0] else (), complete=False)
    if options.without is not None:
        left_out = {*rows_by_file("without", Path(options.without), folder, names, complete=False)}
    return group_of, left_out


def _with_fitting_tables(data: str | Path, options: DataOptions) -> DataOptions:
    """Options for other data than those of the training, or for the same elsewhere: groups and tables only if they fit.

    Warns of those that do not.
    """
    _, folder = locate_data(data)
    unfit: dict[str, Any] = {}
    for name in (name for name in TABLES if getattr(options, name) and not is_released(folder)):
        alone = options.changed(dict.fromkeys({*TABLES} - {name}))
        try:
            list_again(folder, alone)
        except PointsetError as error:
            warnings.warn(f"{folder}: {name} of the training is left out, because {error}", stacklevel=4)
            unfit[name] = None
    return dataclasses.replace(options, **unfit)


def with_axis(options: DataOptions, names: Sequence[str], card: Card | None, folder: Path) -> DataOptions:
    """Options that say the upward axis of files, and which are turned to it.

    If none is given, it is that of the card, or the usual one of the files, with a warning if it is y for some.
    """
    if options.up or card:
        axis = options.up or (card.up if card else None)
        # DAE files state their axis, and are read with Z up.
        stated = {".dae"} & {suffix_of(name) for name in names} if axis == "y" else set()
        return dataclasses.replace(options, up=axis, turned=tuple(sorted(stated | {*options.turned})))
    up: Axis = usual_up(names) or "z"
    upright = tuple(sorted({suffix_of(name) for name in names if usual_up([name]) == "y"}))
    if upright:
        said, remedy = "y is taken for their upward axis", "give --up y or --up z"
        if up == "z":
            said, remedy = "beside others, they are turned to Z up", "give --up z if they lie with Z up"
        warnings.warn(
            f"{folder} holds {' and '.join(upright)} files, which usually have Y up: {said}; look at them with "
            f"`pointset data show {shlex.quote(str(folder))}`, and {remedy} (in Python up=)",
            UserWarning,
            stacklevel=4,
        )
    return dataclasses.replace(options, up=up, turned=upright if up == "z" else ())


def on_one_axis(cache: PointCache, options: DataOptions) -> PointCache:
    """The cache whose shapes all have the axis of the options up; see `DataOptions.turned`."""
    up: Axis = "y" if options.up == "y" else "z"
    other: Axis = "z" if up == "y" else "y"
    return _turned(cache, [other if suffix_of(name) in options.turned else up for name in cache.names], up)


def _turned(cache: PointCache, axes: Sequence[str], up: Axis) -> PointCache:
    """The cache whose shapes, each with one of these directions up, are rotated to have this axis up."""
    if {*axes} <= {up}:
        return cache
    columns = cache.columns
    for now in {*axes} - {up}:
        rows = np.repeat([axis == now for axis in axes], cache.sizes)
        for name in {"points", "normals"} & {*columns}:
            flat = np.array(columns[name]).reshape(-1, 3)
            flat[rows] = rotate_up(flat[rows], now, up)
            columns[name] = flat.reshape(columns[name].shape)
    return cache.with_columns(columns)


def _folder_cache(
    folder: Path,
    card: Card | None,
    split: str,
    options: DataOptions,
    listing: Listing | None,
    progress: bool,
    classes: Sequence[str] | None,
) -> tuple[PointCache, dict[str, frozenset[int]]]:
    """The cache of one split of a folder (released clouds, cloud files or meshes), and the labels of other splits."""
    if listing is None:
        return _released_cache(folder, card, split, options)
    if options.variant is not None:
        raise PointsetError(f"{folder} comes in one version only: leave variant={quoted(options.variant)} out")
    check_against_card(listing.classes, len(listing.shapes), card, split, folder)
    further = f", or score the known ones with `pointset classify {shlex.quote(str(folder))}` and the same --model"
    _require_classes(listing.classes, classes, str(folder), further)
    if listing.kind == "meshes" and options.points > options.cache_points:  # before they are sampled
        raise PointsetError(
            f"points={options.points} is more than the {options.cache_points} that are sampled of each shape of "
            f"{folder}: ask for at most {options.cache_points} (--points {options.cache_points}), or {MORE_POINTS}"
        )
    if listing.kind == "clouds":
        _require_no_sampling(folder, options)
    elif options.further:
        raise PointsetError(
            f"{folder} has meshes, whose points have normals alone: leave {', '.join(options.further)} out"
        )
    plan = CachePlan(listing, Sampling.of(listing.kind, options))
    return load_cache(plan, on_error=options.on_error, progress=progress), listing.present


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
    """Warn if a class is only in train, or only in test."""
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


def load_like(
    description: Mapping[str, Any],
    split: str,
    data: str | Path | None = None,
    on_error: OnError | None = None,
    points: int | None = None,
    up: str | None = None,
    remove_outliers: bool | None = None,
    labels: str | None = None,
) -> PointSets:
    """Load another split or another dataset with the options in a `PointSets.describe` description.

    Each shape of another dataset is turned (with a UserWarning) and normalised as the preparation does with its file.
    A PointsetError if the data is missing, existed only in memory, or has other classes than the description.

    `data`, `on_error`, `points`, `remove_outliers` and `labels` replace those of the description. `up` is the upward
    axis of the data, see `pointset.data.axes.FileUp`; "auto" and None use the description's for its own data, the
    card's for a known dataset, and for other files that of their format.
    """
    if data is None and not is_on_disk(description["source"]):
        raise PointsetError(
            f"the run was trained on data in memory ({quoted(description['source'])}) or elsewhere, which is not saved "
            "with it: give files with --data, or use pointset.evaluate in Python"
        )
    check_up(up)
    given = {"on_error": on_error, "points": points, "remove_outliers": remove_outliers}
    options = DataOptions.of(description).changed({name: own for name, own in given.items() if own is not None})
    turn = None if up == "auto" else up
    if turn is not None or data in list_cards():  # which say it of all their files
        options = options.changed({"turned": ()})
    if data is not None:
        options = _with_fitting_tables(data, options.changed({"labels": None} if labels else {}))
    options = options if labels is None else options.changed({"labels": labels})
    try:
        sets = load_split(data or description["source"], split, options, classes=description["classes"])
    except PointsetError as error:
        source = Path(description["source"])
        if data is None and source.is_absolute() and not source.exists():
            raise PointsetError(f"{error}; if the data of the run has moved, give its folder with --data") from error
        raise
    own, cache = sets.source == description["source"], sets.point_cache
    preparation = Preparation.from_dict(description["preparation"])
    # A dataset whose shapes are centred already keeps its normalisation: their subsets are not centred again.
    if not (own or cache.is_centred(sets.rows.numpy())):
        sets = sets.normalized(preparation.normalize)
    of_card = load_card(sets.source).up if sets.source in list_cards() else None
    as_loaded = [(own and not turn) or suffix_of(name) in sets.options.turned for name in cache.names]
    usual = [of_card or preparation.usual_up(name) for name in cache.names]
    axes = [sets.up if done else turn or axis for done, axis in zip(as_loaded, usual, strict=True)]
    odd = [name for name, axis in zip(cache.names, axes, strict=True) if axis != sets.up]
    if not odd:
        return sets
    if turn is None:
        warn_of_rotation(f"{sets.source} has" if of_card else f"{suffix_of(odd[0])} files usually have", sets.up)
    return sets.with_cache(_turned(cache, axes, sets.up))


def list_again(folder: Path, options: DataOptions) -> dict[str, Listing]:
    """The shapes of each split, without the warnings, which were given when the data was loaded."""
    with warnings.catch_warnings(action="ignore"):
        return list_splits(folder, **options.listing)


def has_test_split(sets: PointSets) -> bool:
    """True if the folder or the release that sets were loaded from has a test split."""
    _, folder = locate_data(sets.source, progress=False)
    return is_released(folder) or SPLITS[1] in list_again(folder, sets.options)


def is_split_by_hash(sets: PointSets) -> bool:
    """True if the folder that sets were loaded from has no folders of splits."""
    _, folder = locate_data(sets.source, progress=False)
    return not is_released(folder) and any(own.is_hashed for own in list_again(folder, sets.options).values())
