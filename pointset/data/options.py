"""The data options of a run: one frozen object that is passed as a whole and saved with results."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self, get_args

from pointset.configuration import COMMON, Checked, PointCount, Seed
from pointset.data.outliers import OutlierOptions
from pointset.data.readers.formats import SHAPE_SUFFIXES
from pointset.data.unusable import OnError
from pointset.errors import PointsetError, quoted

Normalize = Literal[
    "unit-sphere", "standardize", "center-standardize", "principal-axes", "upright-axes", "upright-axes-y", "none"
]
SPLITS = ("train", "test")
Sampler = Literal["uniform", "fps", "poisson"]
SAMPLERS: tuple[str, ...] = get_args(Sampler)
NORMALS = "normals"
"""The feature that is a direction, and rotates with the shape."""
MORE_POINTS = "sample more with cache_points (--cache-points of `train` and `compare`)"
"""Hint in errors: how to sample larger caches; other commands use the options that a model was trained with."""
NOT_SAVED = ("on_error",)
TABLES = ("labels", "groups", "without")
"""Options that are paths of tables; groups may be something else."""


class WithFeatures(Checked):
    """Base class of what has `features` of points."""

    features: tuple[str, ...]

    @property
    def has_normals(self) -> bool:
        """True if columns 3 to 5 of the points are unit normals."""
        return NORMALS in self.features

    @property
    def further(self) -> tuple[str, ...]:
        """The features other than normals, which follow them."""
        return tuple(name for name in self.features if name != NORMALS)

    @property
    def arrays(self) -> list[str]:
        """Names of the arrays of a shape whose columns are those of its points, in this order."""
        return ["points"] + ["normals"] * self.has_normals + ["features"] * bool(self.further)


@dataclass(frozen=True, kw_only=True)
class DataOptions(OutlierOptions, WithFeatures):
    """How the point sets of a run are made; all models of a comparison share them.

    Example:
        >>> options = pointset.DataOptions(points=128, normalize="standardize")
        >>> options.points, options.sampler
        (128, 'uniform')
        >>> pointset.DataOptions(points=0)
        Traceback (most recent call last):
        pointset.errors.PointsetError: points must be a whole number from 1 to 10,000,000, got 0
    """

    points: Annotated[PointCount, COMMON] = 1024
    """Points per set."""
    cache_points: PointCount = 2048
    """Points sampled once per mesh, from which sets are drawn."""
    normalize: Normalize = "unit-sphere"
    """Normalisation of each set, see `pointset.data.normalize`; "principal-axes" for shapes in any pose, "upright-axes"
    for shapes that are rotated about the vertical axis."""
    sampler: Sampler = "uniform"
    """How points are sampled from meshes; see `pointset.data.sampling`."""
    data_seed: Seed = 0
    """Seeds caches and fixed test subsets."""
    split_seed: Seed = 0
    """Seeds the train/test split of a folder that has none."""
    variant: str | None = None
    """Version of the dataset, if there are several, such as PB_T50_RS of ScanObjectNN."""
    up: Annotated[Literal["y", "z", "auto"] | None, COMMON] = None
    """Axis that points up; "auto" uses the card's, or for a folder y for OBJ, GLB and glTF, otherwise z."""
    turned: tuple[str, ...] = ()
    """Suffixes of files that have the other axis than `up`, and are turned; "auto" takes those that usually have Y up,
    beside others."""
    on_error: OnError = "raise"
    """How to handle clouds or meshes that cannot be used: "raise" reports them all, "skip" continues without them."""
    features: tuple[str, ...] = ()
    """Point features beside the coordinates: "normals" (from meshes or files); for point clouds also "colors",
    "columns" (numbers without names), or fields by name: intensity,return_number."""

    groups: Annotated[str | None, COMMON] = None
    """Shapes that must stay on one side of a split, such as views of one object: a table (*.csv) of files and groups, a
    regular expression whose parentheses are the group, the number of a folder level, or "names" (the file name without
    its last number). None applies "names" within training shapes where it gives groups in most classes; "none" never
    does."""
    labels: Annotated[str | None, COMMON] = None
    """A table (*.csv) with the columns "file" and "label", and perhaps "split" and "group", instead of folders of
    classes; `pointset data show --write-labels` writes one."""
    without: str | None = None
    """A table (*.csv) of files to leave out, as `pointset data check -o check.csv` writes it."""

    def __post_init__(self) -> None:
        names = (self.features,) if isinstance(self.features, str) else self.features
        if isinstance(names, tuple | list) and all(isinstance(name, str) for name in names):
            object.__setattr__(self, "features", tuple(name for item in names for name in item.split(",")))
        super().__post_init__()
        if len(set(self.features)) < len(self.features) or not all(self.features):
            raise PointsetError(f"features must be different names, got {quoted(', '.join(self.features))}")
        if self.has_normals and "axes" in self.normalize:
            raise PointsetError(f"normalize={self.normalize} does not rotate normals: leave normals out")
        if self.turned and (self.up in (None, "auto") or not {*self.turned} <= SHAPE_SUFFIXES):
            raise PointsetError(
                f"turned={quoted(', '.join(self.turned))} must be suffixes of files of shapes, such as .obj, and goes "
                "with up=y or up=z"
            )
        if self.up == "auto":  # one spelling, because options of results are compared for equality
            object.__setattr__(self, "up", None)
        if self.has_normals:  # normals come first, so that they are always columns 3 to 5
            object.__setattr__(self, "features", (NORMALS, *self.further))

    @property
    def listing(self) -> dict[str, Any]:
        """The arguments of `list_folder`."""
        return {"seed": self.split_seed, "groups": self.groups, "labels": self.labels, "without": self.without}

    def describe(self) -> dict[str, Any]:
        """Return the fields that results save, without `on_error`: results list skipped shapes."""
        return {name: value for name, value in self.as_dict().items() if name not in NOT_SAVED}

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Self:
        """Return the options saved in a `PointSets.describe` description.

        The sampler of released clouds becomes "uniform". If shapes were left out, `on_error` is "skip".
        """
        names = {field.name for field in dataclasses.fields(cls)}.difference(NOT_SAVED)
        saved = {name: value for name, value in description.items() if name in names}
        sampler = saved["sampler"] if saved["sampler"] in SAMPLERS else "uniform"
        on_error = "skip" if description.get("skipped") else "raise"
        return cls.from_dict({**saved, "sampler": sampler, "on_error": on_error})
