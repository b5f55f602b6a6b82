"""Load data with the options of an earlier training run."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pointset.configuration import check
from pointset.data.axes import FileUp
from pointset.data.catalogue.cards import is_on_disk, list_cards, load_card
from pointset.data.catalogue.folders import list_folder
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released
from pointset.data.dataset import load_split
from pointset.data.options import SPLITS, TABLES, DataOptions
from pointset.data.point_sets import PointSets
from pointset.data.preparation import warn_of_rotation
from pointset.data.readers.formats import suffix_of
from pointset.data.unusable import OnError
from pointset.errors import PointsetError, quoted


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
    """Load another split or another dataset with the options of a model's training data.

    Shapes of another dataset are rotated to the upward axis of the training data (with a UserWarning) and normalised
    like the training data, so that a model can be evaluated on them.

    Args:
        description: description of the training data: `model.description["data"]` of a trained model, or
            `sets.describe()`. Options below that are None have the value in this description.
        split: name of the split, such as "test".
        data: name or folder of another dataset; None means the dataset of the training data.
        on_error: "raise" an error for files that cannot be used, or "skip" them.
        points: points per set.
        up: upward axis of the files. "auto" or None means the axis of the training data, if `data` is None. For another
            dataset, it means the axis on its card or, without a card, the usual axis of each file's format.
        remove_outliers: whether outliers are removed from clouds.
        labels: path of a table with the class of each file.

    Returns:
        The sets [N, points, d], with the classes of the training data.

    Raises:
        PointsetError: the data is missing, existed only in memory, or has other classes than the training data.

    Example:
        >>> loaded = pointset.load_dataset("shapes10", points=64, normalize="standardize", progress=False).describe()
        >>> pointset.data.load_like(loaded, "test", points=32).points.shape
        torch.Size([300, 32, 3])
    """
    if data is None and not is_on_disk(description["source"]):
        found = f"the run was trained on data in memory ({quoted(description['source'])}) or elsewhere"
        remedy = "give files with --data, or use pointset.evaluate in Python"
        raise PointsetError(f"{found}, which is not saved with it: {remedy}")
    check("up", up, FileUp | None)
    direction = None if up == "auto" else up
    changes = {"on_error": on_error, "points": points, "remove_outliers": remove_outliers, "labels": labels}
    options = DataOptions.of(description)
    if data is not None:
        options = _with_fitting_tables(data, options.changed({} if labels is None else {"labels": None}))
    options = options.changed({name: value for name, value in changes.items() if value is not None})
    of_card = load_card(str(data)).up if data in list_cards() and data != description["source"] else None
    now, source = direction or of_card, description["source"]
    try:
        sets = load_split(data or source, split, options, classes=description["classes"], trained=True, now=now)
    except PointsetError as error:
        if data is None and Path(source).is_absolute() and not Path(source).exists():
            raise PointsetError(f"{error}; if the data of the run has moved, give its folder with --data") from error
        raise
    if sets.source == source:
        return sets
    usual = options.up, options.files_up
    rotated = [name for name in sets.point_cache.names if (now or options.usual_up(name)) not in usual]
    if rotated and direction is None:
        kind = f"{sets.source} has" if of_card else f"{suffix_of(rotated[0])} files usually have"
        warn_of_rotation(kind, sets.up)
    # "standardize" of centred training shapes is "center-standardize" for other shapes, unless these are centred, too.
    centred = sets.point_cache.is_centred(sets.rows.numpy())
    return sets if centred else sets.normalized(description["preparation"]["normalize"])


def _with_fitting_tables(data: str | Path, options: DataOptions) -> DataOptions:
    """Return options for another dataset, without the groups and tables that do not fit its files.

    Warns:
        UserWarning: groups or a table are left out.
    """
    _, folder = locate_data(data)
    given = [] if is_released(folder) else [name for name in TABLES if getattr(options, name)]
    for name in given:
        try:
            with warnings.catch_warnings(action="ignore"):
                list_folder(folder, **options.changed(dict.fromkeys({*TABLES} - {name})).listing)
        except PointsetError as error:
            warnings.warn(f"{folder}: option {name} of the training run is not used, because {error}", stacklevel=4)
            options = options.changed({name: None})
    return options


def has_test_split(sets: PointSets) -> bool:
    """Return True if the listing of the sets has a test split. Published datasets have that split but no listing."""
    return sets.listing is None or SPLITS[1] in sets.listing.splits
