"""Load a dataset in the same way as an earlier run did."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pointset.data.axes import check_up, turned_up
from pointset.data.catalogue.cards import list_cards, load_card
from pointset.data.dataset import PointSets, load_split
from pointset.data.options import DataOptions
from pointset.data.preparation import Preparation, warn_of_turning
from pointset.data.readers.formats import suffix_of
from pointset.data.unusable import OnError
from pointset.errors import REPEATED, PointsetError, one_line, quoted


def load_like(
    description: Mapping[str, Any],
    split: str,
    data: str | Path | None = None,
    on_error: OnError | None = None,
    points: int | None = None,
    up: str | None = None,
) -> PointSets:
    """Load another split or another dataset with the options in a `PointSets.describe` description.

    Each shape of another dataset is turned (with a UserWarning) and normalised as the preparation does with its file.
    A PointsetError if the data is missing, existed only in memory, or has other classes than the description.

    Args:
        description: from `PointSets.describe`.
        split: "train" or "test".
        data: a dataset's name or a folder; None uses the description's.
        on_error: see `DataOptions`; None means "skip" if shapes were left out of the description's data, else "raise".
        points: points per set; None uses the description's.
        up: the upward axis of the data, or one of `pointset.data.axes.TURNS`. "auto" and None use the description's for
            its own data, the card's for a known dataset, and for other files that of their format.
    """
    if data is None and is_in_memory(description):
        raise PointsetError(
            f"the run was trained on data in memory ({quoted(description['source'])}) or elsewhere, which is not saved "
            "with it: give files with --data, or use pointset.evaluate in Python"
        )
    check_up(up)
    changes = {"on_error": on_error, "points": points}
    given = {name: value for name, value in changes.items() if value is not None}
    options = DataOptions.of(description).changed(given)
    try:
        sets = load_split(data or description["source"], split, options)
    except PointsetError as error:
        source = Path(description["source"])
        if data is None and source.is_absolute() and not source.exists():
            raise PointsetError(f"{error}; if the data of the run has moved, give its folder with --data") from error
        raise
    if sets.classes != description["classes"]:
        differing = sorted(set(sets.classes) ^ set(description["classes"])) or ["their order"]
        odd = one_line(", ".join(differing), REPEATED)
        raise PointsetError(
            f"{data or description['source']} has other classes than the model was trained on ({odd}): "
            "give data with the same classes"
        )
    own, pool = sets.source == description["source"], sets.source_pool
    preparation = Preparation.from_dict(description["preparation"])
    # A dataset whose shapes are centred already keeps its normalisation: their subsets are not centred again.
    if not (own or pool.is_centred(sets.rows.numpy())):
        sets = sets.normalized(preparation.normalize)
    of_card = load_card(sets.source).up if sets.source in list_cards() else None
    usual = [sets.up if own else of_card or preparation.usual_up(name) for name in pool.names]
    turn = None if up == "auto" else up
    turned = np.array([(turn or axis) != sets.up for axis in usual])
    if not turned.any():
        return sets
    first = pool.names[int(turned.argmax())]
    warn_of_turning(turn, f"{sets.source} has" if of_card else f"{suffix_of(first)} files usually have", sets.up)
    now, rows = turn or ("y" if sets.up == "z" else "z"), np.repeat(turned, pool.sizes)
    arrays = {"points": np.array(pool.points), **pool.arrays}
    for name in {"points", "normals"} & {*arrays}:
        flat = np.array(arrays[name]).reshape(-1, 3)
        flat[rows] = turned_up(flat[rows], now, sets.up)
        arrays[name] = flat.reshape(arrays[name].shape)
    return sets.of_pool(dataclasses.replace(pool, points=arrays.pop("points"), arrays=arrays, checksums=()))


def is_in_memory(description: Mapping[str, Any]) -> bool:
    """True if the sets were not made from files, so that they cannot be loaded again."""
    return description["source"] not in list_cards() and not Path(description["source"]).is_absolute()
