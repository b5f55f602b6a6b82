"""Options: how a shape becomes a point set (`Preparation`), and the data of a training run (`DataOptions`)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from cyclopts import Parameter

from pointset.arguments import explained
from pointset.configuration import COMMON, Count, LocalFeatures, PointCount, PositiveShare, Seed
from pointset.data.axes import Axis, FileUp, usual_up
from pointset.data.outliers import OutlierOptions
from pointset.data.readers.formats import suffix_of
from pointset.data.unusable import OnError
from pointset.errors import PointsetError, quoted

Normalize = Literal["unit-sphere", "standardize", "center-standardize", "principal-axes", "upright-axes", "none"]
SPLITS = ("train", "test")
Sampler = Literal["uniform", "fps", "poisson"]
NORMALS = "normals"
"""Name of the feature that rotates with the shape."""
CLOUD_POINTS = 1024
"""Local features depend on the density, so they need at least this number of points, or all of a smaller cloud."""
DERIVED = ("kinds", "files_up", "inputs", "local_features", "least")
"""Fields of a preparation that follow from the data, the model and the training."""
TABLES = ("labels", "groups", "without")
"""Options that can be the path of a table."""
_DERIVED = Parameter(parse=False)


@dataclass(frozen=True, kw_only=True)
class Preparation(OutlierOptions):
    """How a shape becomes a set of points. A trained model keeps the preparation of its training shapes.

    Example:
        >>> pointset.data.Preparation(points=100, normalize="standardize", features=("normals",))
        Preparation(100 points, standardize, z up, with normals)
    """

    points: Annotated[PointCount, COMMON] = 1024
    """Points per set. Smaller clouds are used whole."""
    cache_points: PointCount = 2048
    """Number of points that are sampled once from each mesh and cached. Sets are random subsets of them. In the
    preparation of a trained model, it is the size of the largest training shape."""
    normalize: Normalize = "unit-sphere"
    """Normalisation of each set. "unit-sphere" centres it and scales it to radius 1, and "center-standardize" to
    standard deviation 1. "standardize" subtracts one mean from all coordinates instead of centring. "principal-axes"
    (for any pose) and "upright-axes" (for shapes rotated about the upward axis) also rotate sets to principal axes."""
    sampler: Sampler = "uniform"
    """How points are sampled from meshes: uniformly, or evenly spread by farthest-point sampling ("fps") or
    Poisson-disk sampling ("poisson", which needs the extra open3d)."""
    up: Axis = "z"
    """Upward axis of the sets."""
    kinds: Annotated[tuple[str, ...], _DERIVED] = ()
    """Suffixes of files with the upward axis of the training files. Other files have the axis of their format."""
    files_up: Annotated[FileUp | None, _DERIVED] = None
    """Upward axis of the training files if it is neither y nor z. Their points are rotated to Z up."""
    features: tuple[str, ...] = ()
    """Point features in addition to the coordinates: "normals" (of meshes or clouds), and for clouds also "colors",
    "columns" (all columns without a name) or names of columns, such as intensity,return_number."""
    inputs: Annotated[Count, _DERIVED] = 3
    """Number of values per point: 3 coordinates and the features, without local features."""
    local_features: Annotated[LocalFeatures, _DERIVED] = "none"
    """Kind of local features; see `pointset.data.local_features`."""
    least: Annotated[PositiveShare, _DERIVED] = 0.5
    """With local features, clouds with less than this share of the points of a training shape cause a warning."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.features)) < len(self.features) or not all(self.features) or NORMALS in self.features[1:]:
            given = quoted(", ".join(self.features))
            raise PointsetError(f"features must be different names, normals first, got {given}")
        if self.has_normals and "axes" in self.normalize:
            raise PointsetError(f"normalize={self.normalize} does not rotate normals: leave normals out")

    @classmethod
    def _fields_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields; features may also be one text of names separated by commas, in any order."""
        fields = super()._fields_of(values)
        names = fields.get("features")
        if names and isinstance(names, str | tuple):
            split = ",".join([names] if isinstance(names, str) else map(str, names)).split(",")
            fields["features"] = tuple(sorted(split, key=lambda name: name != NORMALS))
        return fields

    def __repr__(self) -> str:
        """Return one line with the options that change the points."""
        beside = [f"with {', '.join(self.features)}"] * bool(self.features)
        beside += [f"local features {self.local_features}"] * (self.local_features != "none")
        beside += ["outliers removed"] * self.remove_outliers
        sizes = f"{self.points:,} points" if self.sampler == "uniform" else f"{self.points:,} points ({self.sampler})"
        return f"Preparation({', '.join([sizes, self.normalize, f'{self.up} up', *beside])})"

    @property
    def has_normals(self) -> bool:
        """True if columns 3 to 5 of the points are unit normals."""
        return NORMALS in self.features

    @property
    def further(self) -> tuple[str, ...]:
        """The features other than normals. They come after the normals."""
        return tuple(name for name in self.features if name != NORMALS)

    @property
    def arrays(self) -> list[str]:
        """Names of the arrays that are joined, in this order, to the points [n, d] of a shape."""
        return ["points"] + ["normals"] * self.has_normals + ["features"] * bool(self.further)

    @property
    def cloud_points(self) -> int:
        """Number of points of a shape from which local features are computed. A set is a subset of these points."""
        return self.points if self.local_features == "none" else max(self.points, CLOUD_POINTS)

    def usual_up(self, name: str) -> FileUp:
        """Return the assumed upward axis of a file that does not declare one."""
        of_training = self.files_up or self.up
        return of_training if suffix_of(name) in self.kinds else usual_up([name]) or of_training


@explained
@dataclass(frozen=True, kw_only=True)
class DataOptions(Preparation):
    """The data of a training run: which shapes it uses, and how they become point sets.

    All models of a comparison have the same data.

    Example:
        >>> options = pointset.DataOptions(points=128, normalize="standardize")
        >>> options.points, options.sampler
        (128, 'uniform')
        >>> pointset.DataOptions(points=0)
        Traceback (most recent call last):
        pointset.errors.PointsetError: points must be a whole number from 1 to 10,000,000, got 0
    """

    up: Annotated[FileUp, COMMON] = "auto"  # type: ignore[assignment]
    """Upward axis of the files. "auto" means that of the card or, without a card, y for OBJ, GLB, glTF, else z. Shapes
    with x or a negative axis up (--up=-y) are rotated to Z up."""
    data_seed: Seed = 0
    """Seed of the points sampled from meshes and of the fixed subsets for evaluation."""
    split_seed: Seed = 0
    """Seed of the train/test split of a folder without a split."""
    variant: str | None = None
    """Version of a dataset with several versions, such as PB_T50_RS of ScanObjectNN."""
    on_error: OnError = "raise"
    """What to do about files that cannot be used: "raise" an error after trying all files, or "skip" these files."""

    groups: Annotated[str | None, COMMON] = None
    """Groups of shapes that a split keeps whole, such as views of one object: a CSV table of files and groups, a
    regular expression with the group in parentheses, the number of a folder level, "names" (file name without last
    number) or "none". Default in training: "names" if most shapes share a group."""
    labels: Annotated[str | None, COMMON] = None
    """CSV table of labels instead of a folder per class: columns "file", "label", optionally "split" and "group".
    `pointset data show --write-labels` writes one."""
    without: str | None = None
    """CSV table of files to leave out, such as the one that `pointset data check -o check.csv` writes."""

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Self:
        """Return the options in a description from `PointSets.describe`.

        If shapes were left out, `on_error` is "skip".
        """
        saved = cls._fields_of({name: description[name] for name in cls.beside() if name in description})
        prepared = Preparation.from_dict(description["preparation"]).changed({"normalize": description["normalize"]})
        return cls(**vars(prepared) | saved, on_error="skip" if description.get("skipped") else "raise")

    @classmethod
    def _fields_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        if derived := [name for name in values if name in DERIVED]:
            raise PointsetError(f"{derived[0]} follows from the data, the model and the training: leave it out")
        return super()._fields_of(values)

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the names of the options that can be chosen."""
        return [name for name in super().option_names() if name not in DERIVED]

    @classmethod
    def beside(cls) -> list[str]:
        """Return the names of the options that are saved beside the preparation: all others except `on_error`."""
        of_preparation = Preparation.option_names()
        return [name for name in cls.option_names() if name not in (*of_preparation, "on_error")]

    @property
    def listing(self) -> dict[str, Any]:
        """The arguments of `list_folder`."""
        return {"seed": self.split_seed, "groups": self.groups, "labels": self.labels, "without": self.without}

    def as_dict(self) -> dict[str, Any]:
        """Return the options that can be chosen as plain data for JSON."""
        return {name: value for name, value in super().as_dict().items() if name not in DERIVED}
