"""Datasets of point sets, drawn from point caches, for training and evaluation."""

import copy
import functools
from collections.abc import Sequence
from dataclasses import fields
from typing import Any, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from pointset.configuration import LocalFeatures, PointCount, check, check_seed
from pointset.data.axes import Axis
from pointset.data.catalogue.folders import Listing
from pointset.data.groups import NO_GROUPS, Grouping, Groups, alone, groups_from_names, number_groups
from pointset.data.local_feature_cache import cache_with_local_features
from pointset.data.local_features import WIDTHS
from pointset.data.normalize import normalize_rows
from pointset.data.options import CLOUD_POINTS, DataOptions, Preparation
from pointset.data.point_cache import Indices, PointCache, fixed_indices, random_indices
from pointset.data.ragged import PaddedSets, mask_of, pad_rows
from pointset.data.rotations import Columns
from pointset.data.splitting import held_for_validation
from pointset.errors import PointsetError, described
from pointset.inputs import InputError, as_places

LEFT_OUT = ("points", "fingerprint", "grouping", "listing")
"""Attributes that are not copied to subsets or to other processes."""
_AT_ONCE = 256
"""Number of shapes that are read at a time for `PointSets.points`, so that memory never holds a whole cache."""


class PointSets(Dataset[tuple[Tensor, int]]):
    """Point sets of shapes. Each set is a subset of the cached points of a shape.

    For evaluation, each shape has a fixed subset (`points`, `mask`, `dataset[i]`), which depends only on the seed and
    the shape's name. For training, `draw` returns a new random subset each time. Both are normalised after the subset
    is taken, so that a model sees only the points of the subset.

    A point has d values: three coordinates, then the features in `options.features`, normals first, then local
    features, see `with_local_features`. Only coordinates are normalised.

    Sets have n points each. If a shape has fewer points, its set has all of them. Sets of different sizes are padded
    with zeros, and a mask is True at real points.

    Args:
        cache: the points of all shapes; it becomes the attribute `point_cache`.
        rows: int64 [N]; shape i is row `rows[i]` of the cache. None means all rows.
        options: how sets are made from the cache.
        name: name of the dataset or of its folder.
        source: a dataset's name or a folder's path, from which `load_dataset` loads the data again.
        split: name of the split, such as "train", "test" or "validation".

    Attributes:
        names: N unique names of shapes.
        classes, labels: names of the classes, and labels int64 [N], which are indices into these names.

    Example:
        >>> len(train), train.points.shape, train.labels[:4].tolist()
        (16, torch.Size([16, 32, 3]), [0, 1, 0, 1])
        >>> train.draw([0, 1], torch.Generator().manual_seed(0), size=8).shape
        torch.Size([2, 8, 3])
    """

    groups: Groups | None = None
    """Index of each shape's group, int64 [N]; None unless `grouped` was called. See `grouping`."""
    listing: Listing | None = None
    """The files of all splits of the folder that the sets were loaded from; None for subsets, and if shapes share
    files."""
    local_features: LocalFeatures = "none"
    """Kind of the local features that follow the other values of each point."""

    def __init__(
        self,
        cache: PointCache,
        options: DataOptions,
        *,
        name: str = "",
        source: str = "",
        split: str = "train",
        rows: Tensor | None = None,
    ) -> None:
        """Create the sets; a PointsetError if all shapes are too small, or the features are not those in `options`."""
        self.point_cache, self.options = cache, options
        if not {*options.arrays} <= {*cache.columns} or ("features" in cache.arrays) != bool(options.further):
            raise PointsetError(
                f"features={list(options.features)} do not fit the point cache, which has {[*cache.arrays] or 'none'}"
            )
        self.name, self.source, self.split = name, source or name, split
        self.require_size(options.points, f"points={options.points}", "--points")
        self.classes = cache.classes
        self._choose(torch.arange(len(cache)) if rows is None else as_places("rows", rows, len(cache)))

    @property
    def size(self) -> int:
        """Number of points per set, n; the maximum if sets differ in size."""
        return self.options.points

    @property
    def up(self) -> Axis:
        """The axis that points up, after normalisation."""
        return "y" if self.options.up == "y" and self.options.normalize != "principal-axes" else "z"

    @property
    def inputs(self) -> int:
        """Number of values per point: 3 coordinates and the features, without local features."""
        return sum(self.point_cache.columns[name].shape[-1] for name in self.options.arrays)

    @property
    def columns(self) -> Columns:
        """The features that augmentations rotate with the shapes."""
        return Columns(self.options.has_normals, self.local_features)

    def require_inputs(self, model: Any) -> None:
        """Raise a PointsetError if a model expects another number of inputs per point."""
        wanted = getattr(model, "inputs", self.inputs)
        if wanted != self.inputs:
            beside = f" (coordinates and {', '.join(self.options.features)})" if self.options.features else ""
            raise PointsetError(
                f"the model takes {wanted} values per point, but {self.name or 'the data'} has "
                f"{self.inputs}{beside}: create the model with inputs={self.inputs}, or load the data with other "
                "features"
            )

    def require_size(self, size: int, request: str, flag: str = "") -> None:
        """Raise a PointsetError if no shape of the cache has `size` points. Clouds of a test split may all be smaller.

        The message starts with the `request`, such as "points=128", and names the `flag` of a command.
        """
        cache, largest = self.point_cache, int(self.point_cache.sizes.max(initial=0))
        if len(cache) and size > largest and (cache.offsets is None or self.split == "train"):
            raise PointsetError(
                f"{request} is more than the {largest} that {self.name or 'the data'} holds per shape: choose at most "
                f"{largest}{flag and f' ({flag} {largest})'}"
            )

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of points of each set, [N]."""
        return np.minimum(self.point_cache.sizes[self.rows.numpy()], self.size)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        """Return one line with the name, split and options, and the numbers of shapes, classes and points."""
        features = f" with {', '.join(self.options.features)}" if self.options.features else ""
        ragged = "up to " if self.mask is not None else ""
        return (
            f"PointSets {self.name or 'without a name'}, {self.split}: {len(self):,} shapes of "
            f"{len(self.classes)} classes, {ragged}{self.size:,} points each{features}, {self.options.normalize}"
        )

    @overload
    def __getitem__(self, index: int) -> tuple[Tensor, int]: ...
    @overload
    def __getitem__(self, index: slice) -> "PointSets": ...
    def __getitem__(self, index: int | slice) -> "tuple[Tensor, int] | PointSets":
        """Return the fixed set of shape `index`, [n, d] without padding, and the label of the shape.

        A slice returns the `PointSets` of those shapes.
        """
        if isinstance(index, slice):
            return self.subset(range(len(self))[index])
        row = range(len(self))[index]  # raises the IndexError that ends an iteration
        return self._fixed(self.rows[[row]])[0], int(self.labels[index])

    @functools.cached_property
    @torch.inference_mode(False)  # the first use may be in `evaluate`, and training may use them afterwards
    def points(self) -> Tensor:
        """The fixed sets for evaluation, float32 [N, n, d], padded with zeros and made at first use.

        If sets differ in size, an integer index returns the points of one set without padding.
        """
        sizes = self.sizes
        whole = torch.zeros(len(self), int(sizes.max(initial=0)), self.inputs + WIDTHS[self.local_features])
        for first in range(0, len(self), _AT_ONCE):
            some = self._fixed(self.rows[first : first + _AT_ONCE])
            whole[first : first + len(some), : some.shape[1]] = some
        return whole if self.mask is None else PaddedSets.of(whole, sizes.tolist())

    @property
    def mask(self) -> Tensor | None:
        """Mask of `points`, bool [N, n], True at real points; None when all sets have the same size."""
        return mask_of(torch.from_numpy(self.sizes))

    def draw(self, indices: Tensor | Sequence[int], generator: torch.Generator, size: int | None = None) -> Tensor:
        """Return sets for training: a new random subset of each shape's cached points, drawn without replacement.

        Args:
            indices: int64 [B], indices of shapes.
            generator: a generator on the CPU.
            size: number of points per subset; a smaller shape is used whole. None means that of the fixed sets.

        Returns:
            float32 [B, n, d], normalised; padded with zeros if the sets have different sizes.
        """
        return self.points_at(self.draw_indices(indices, generator, size))[0]

    def draw_indices(
        self, indices: Tensor | Sequence[int], generator: torch.Generator, size: int | None = None
    ) -> Indices:
        """Return the indices of the subsets that `draw` would draw, for `points_at`."""
        if size is not None:
            check("size", size, PointCount)
            self.require_size(size, f"size={size}")
        rows = self.rows[as_places("indices", indices, len(self))].numpy()
        return random_indices(self.point_cache, rows, self.size if size is None else size, generator)

    def points_at(self, where: Indices) -> tuple[Tensor, Tensor | None]:
        """Return the normalised points of subsets, [B, n, d], and their mask, bool [B, n].

        The points are padded with zeros. The mask is None when all sets have the same size.
        """
        indices, sizes = where[0], torch.from_numpy(where[1])
        taken = [self.point_cache.take(indices, name) for name in self.options.arrays]
        if self.local_features != "none":
            taken.append(self.point_cache.take(indices, self.local_features))
        padded = [pad_rows(torch.from_numpy(values), sizes) for values in taken]
        rows, mask = torch.cat([values.float() for values, _ in padded], dim=2), padded[0][1]
        return normalize_rows(rows, self.options.normalize, mask, self.columns, self.up), mask

    def subset(self, indices: Tensor | Sequence[int], split: str | None = None) -> "PointSets":
        """Return a dataset of the shapes at `indices`, in that order. Both datasets share the cache."""
        view = copy.copy(self)
        view.split, places = split or self.split, as_places("indices", indices, len(self))
        view._choose(self.rows[places])
        view.groups = None if self.groups is None else self.groups[places.numpy()]
        return view

    def with_local_features(self, kind: LocalFeatures) -> "PointSets":
        """Return the same shapes with local features, which are computed once per cache.

        The features are computed from `Preparation.cloud_points` points of each shape, and sets are subsets of these
        points. If a shape has more points in the cache, some are chosen at random.
        """
        if kind == self.local_features:
            return self
        view = copy.copy(self)
        if kind != "none":
            most = max(self.size, CLOUD_POINTS)
            view.point_cache = cache_with_local_features(self.point_cache, kind, most, self.options.data_seed)
        view.local_features = kind
        return view

    def normalized(self, how: str) -> "PointSets":
        """Return the same sets with another normalisation, see `DataOptions.normalize`. "none" keeps the units."""
        view = copy.copy(self)
        view.options, view.listing = self.options.changed({"normalize": how}), self.listing
        return view

    def grouped(self, groups: Sequence[Any] | NDArray[Any]) -> "PointSets":
        """Return the same sets with groups. Sets of one group are never on both sides of a split.

        Args:
            groups: the name or number of the group of each set, [N].

        Raises:
            InputError: `groups` does not have one group for each set.
        """
        given = np.asarray(groups)
        if given.shape != (len(self),):
            found = f"{len(given):,}" if given.ndim == 1 else described(groups)
            raise InputError(f"groups must be one for each of the {len(self):,} sets, got {found}")
        view = copy.copy(self)
        view.groups = number_groups(given.tolist())
        return view

    @functools.cached_property
    def grouping(self) -> Grouping:
        """The groups from `grouped`, or else from `groups_from_names`; none if `options.groups` is "none"."""
        if self.groups is not None:
            return Grouping(number_groups(self.groups.tolist()), "given")  # some groups may be only in other subsets
        if self.options.groups == NO_GROUPS:
            return alone(len(self))
        return groups_from_names(self.names, self.labels.tolist())

    def split_validation(self, fraction: float, seed: int) -> tuple["PointSets", "PointSets"]:
        """Split into training and validation sets, stratified by class.

        From a class of c shapes, round(fraction * c) random ones are held out, but at least one stays in training.
        Groups (see `grouping`) are held out whole: some that together have at most this number of shapes, or one larger
        group.

        Returns:
            (training, validation), both in the order of this dataset.

        Raises:
            PointsetError: the fraction is not in (0, 1), or is so small that validation would be empty.
        """
        check("fraction", fraction, float)
        check_seed(seed)
        if not 0.0 < fraction < 1.0:
            raise PointsetError(f"fraction must be in (0, 1), got {fraction}")
        held = held_for_validation(self.grouping.groups, self.labels.numpy(), fraction, seed)
        train, validation = (torch.from_numpy(np.flatnonzero(side)) for side in (~held, held))
        return self.subset(train), self.subset(validation, "validation")

    def describe(self) -> dict[str, Any]:
        """Return the name, classes, options and fingerprint of the data as plain values, to save with results."""
        beside = {"left_out": list(self.point_cache.skipped), "remarks": self.point_cache.remarks}
        return {
            "name": self.name,
            "source": self.source,
            "split": self.split,
            "shapes": len(self),
            "skipped": len(self.point_cache.skipped),
            **{name: value for name, value in beside.items() if value},
            "classes": list(self.classes),
            "normalize": self.options.normalize,
            **{name: getattr(self.options, name) for name in self.options.beside()},
            "fingerprint": self.fingerprint,
            "preparation": self.preparation.as_dict(),
        }

    @property
    def preparation(self) -> Preparation:
        """The preparation that makes a set like these from another shape.

        "standardize" subtracts one number from all coordinates, so an off-centre shape would stay off-centre. If the
        shapes of the dataset are centred, the preparation therefore has "center-standardize".
        """
        centred = self.options.normalize == "standardize" and self.point_cache.is_centred(self.rows.numpy())
        derived = {
            "normalize": "center-standardize" if centred else self.options.normalize,
            "up": self.up,
            "cache_points": max(1, int(self.point_cache.sizes.max(initial=0))),
            "inputs": self.inputs,
            "local_features": self.local_features,
        }
        return Preparation(**{field.name: getattr(self.options, field.name) for field in fields(Preparation)} | derived)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of the classes and of the names, labels and points of all shapes, in order, without file paths."""
        return self.point_cache.fingerprint(self.rows.tolist(), self.options.arrays[1:])

    def _choose(self, rows: Tensor) -> None:
        self.rows = rows
        self.labels = torch.from_numpy(self.point_cache.labels)[rows]
        self.names = [self.point_cache.names[row] for row in rows.tolist()]

    def _fixed(self, rows: Tensor) -> Tensor:
        """Return the points of the fixed subsets of some rows of the cache."""
        return self.points_at(fixed_indices(self.point_cache, rows.numpy(), self.size, self.options.data_seed))[0]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the attributes `LEFT_OUT`, for copies and worker processes."""
        return {name: value for name, value in vars(self).items() if name not in LEFT_OUT}
