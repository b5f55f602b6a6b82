"""How shapes become sets of points (`Preparation`), and what else determines the data of a run (`DataOptions`)."""

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
"""The feature that is a direction, and rotates with the shape."""
CLOUD_POINTS = 1024
"""Points of the cloud whose neighbourhoods are described, where a shape has as many: they depend on the density."""
DERIVED = ("kinds", "files_up", "inputs", "local_features", "least")
"""Fields of a preparation that follow from the data, the model and the training."""
TABLES = ("labels", "groups", "without")
"""Options that are paths of tables; groups may be something else."""
_DERIVED = Parameter(parse=False)


@dataclass(frozen=True, kw_only=True)
class Preparation(OutlierOptions):
    """How shapes become sets of points; a trained model has the one of its training.

    Example:
        >>> pointset.data.Preparation(points=100, normalize="standardize", features=("normals",))
        Preparation(100 points, standardize, z up, with normals)
    """

    points: Annotated[PointCount, COMMON] = 1024
    """Points per set; a smaller cloud gives all its points."""
    cache_points: PointCount = 2048
    """Points sampled once per mesh, from which sets are drawn; of a trained model, those of its largest shape."""
    normalize: Normalize = "unit-sphere"
    """Normalisation of each set, see `pointset.data.normalize`; "principal-axes" for shapes in any pose, "upright-axes"
    for shapes that are rotated about the upward axis."""
    sampler: Sampler = "uniform"
    """How points are sampled from meshes; see `pointset.data.sampling`."""
    up: Axis = "z"
    """The upward axis of the sets."""
    kinds: Annotated[tuple[str, ...], _DERIVED] = ()
    """Suffixes of the training files, which have one upward axis; others have the usual axis of their format."""
    files_up: Annotated[FileUp | None, _DERIVED] = None
    """Upward axis of the training files, if it is neither y nor z: their points are rotated to Z up."""
    features: tuple[str, ...] = ()
    """Point features beside the coordinates: "normals" (from meshes or files); for point clouds also "colors",
    "columns" (numbers without names), or fields by name: intensity,return_number."""
    inputs: Annotated[Count, _DERIVED] = 3
    """Numbers of each point that are given: coordinates and features."""
    local_features: Annotated[LocalFeatures, _DERIVED] = "none"
    """Local features of each point; see `pointset.data.local_features`."""
    least: Annotated[PositiveShare, _DERIVED] = 0.5
    """Share of the points of a training shape below which local features are too coarse for the model: it warns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.features)) < len(self.features) or not all(self.features) or NORMALS in self.features[1:]:
            given = quoted(", ".join(self.features))
            raise PointsetError(f"features must be different names, normals first, got {given}")
        if self.has_normals and "axes" in self.normalize:
            raise PointsetError(f"normalize={self.normalize} does not rotate normals: leave normals out")

    @classmethod
    def _fields_of(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields; features may also be one text, with commas between names, in any order."""
        fields = super()._fields_of(values)
        names = fields.get("features")
        if names and isinstance(names, str | tuple):
            split = ",".join([names] if isinstance(names, str) else map(str, names)).split(",")
            fields["features"] = tuple(sorted(split, key=lambda name: name != NORMALS))
        return fields

    def __repr__(self) -> str:
        """One line with the settings that change the points."""
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
        """The features other than normals, which follow them."""
        return tuple(name for name in self.features if name != NORMALS)

    @property
    def arrays(self) -> list[str]:
        """Names of the arrays of a shape whose columns are those of its points, in this order."""
        return ["points"] + ["normals"] * self.has_normals + ["features"] * bool(self.further)

    @property
    def cloud_points(self) -> int:
        """Points among which neighbours are searched, and of which a set is a part."""
        return self.points if self.local_features == "none" else max(self.points, CLOUD_POINTS)

    def usual_up(self, name: str) -> FileUp:
        """Return the assumed upward axis of a file that does not declare one."""
        of_training = self.files_up or self.up
        return of_training if suffix_of(name) in self.kinds else usual_up([name]) or of_training


@explained
@dataclass(frozen=True, kw_only=True)
class DataOptions(Preparation):
    """The data of a run: how its sets are made, and which shapes they are; all models of a comparison share it.

    Example:
        >>> options = pointset.DataOptions(points=128, normalize="standardize")
        >>> options.points, options.sampler
        (128, 'uniform')
        >>> pointset.DataOptions(points=0)
        Traceback (most recent call last):
        pointset.errors.PointsetError: points must be a whole number from 1 to 10,000,000, got 0
    """

    up: Annotated[FileUp, COMMON] = "auto"  # type: ignore[assignment]
    """Axis that points up in the files; "auto" is the card's, or for a folder y for OBJ, GLB and glTF, otherwise z.
    Files with another axis than y or z are rotated to Z up. Write --up=-y for a negative axis."""
    data_seed: Seed = 0
    """Seeds caches and fixed test subsets."""
    split_seed: Seed = 0
    """Seeds the train/test split of a folder that has none."""
    variant: str | None = None
    """Version of the dataset, if there are several, such as PB_T50_RS of ScanObjectNN."""
    on_error: OnError = "raise"
    """How to handle clouds or meshes that cannot be used: "raise" reports them all, "skip" continues without them."""

    groups: Annotated[str | None, COMMON] = None
    """Shapes that must stay on one side of a split, such as views of one object: a table (*.csv) of files and groups, a
    regular expression whose parentheses are the group, the number of a folder level, or "names" (the file name without
    its last number), the default for training shapes if most classes have several groups; "none" has no groups."""
    labels: Annotated[str | None, COMMON] = None
    """A table (*.csv) with the columns "file" and "label", and perhaps "split" and "group", instead of folders of
    classes; `pointset data show --write-labels` writes one."""
    without: str | None = None
    """A table (*.csv) of files to leave out, as `pointset data check -o check.csv` writes it."""

    @classmethod
    def of(cls, description: Mapping[str, Any]) -> Self:
        """Return the options saved in a `PointSets.describe` description.

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
        """Return the names of the options that are saved beside the preparation; results list skipped shapes."""
        of_preparation = Preparation.option_names()
        return [name for name in cls.option_names() if name not in (*of_preparation, "on_error")]

    @property
    def listing(self) -> dict[str, Any]:
        """The arguments of `list_folder`."""
        return {"seed": self.split_seed, "groups": self.groups, "labels": self.labels, "without": self.without}

    def as_dict(self) -> dict[str, Any]:
        """Return the options that can be chosen as plain data for JSON."""
        return {name: value for name, value in super().as_dict().items() if name not in DERIVED}
