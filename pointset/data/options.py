"""The data options of a run, one frozen object that is passed whole and saved beside results."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from pointset.configuration import Checked, Points, Seed
from pointset.data.unusable import OnError
from pointset.errors import PointsetError, quoted

Sampler = Literal["uniform", "fps", "poisson"]
SAMPLERS: tuple[str, ...] = get_args(Sampler)
NORMALS = "normals"
"""The feature whose numbers are a direction, and turn with the shape."""
MORE_POINTS = "let more be sampled, with pool_points (--pool-points of `train` and `compare`)"
"""What helps where sets want more points than a pool has; other commands take what a model was trained on."""
SAVED_AS = {"data_seed": "seed", "pool_points": "pool"}
"""Fields that have another name in what `PointSets.describe` says."""


@dataclass(frozen=True, kw_only=True)
class DataOptions(Checked):
    """Which point sets a run sees. Every row of a comparison shares them.

    Example:
        >>> options = pointset.DataOptions(points=128, normalize="standardize")
        >>> options.points, options.sampler
        (128, 'uniform')
        >>> pointset.DataOptions(points=0)
        Traceback (most recent call last):
        pointset.errors.PointsetError: points must be a whole number from 1 to 10,000,000, got 0
    """

    LATER = ("features",)

    points: Points = 1024
    """Points per set."""
    pool_points: Points = 2048
    """Points sampled once per mesh, from which sets are drawn."""
    normalize: Literal["unit-sphere", "standardize", "center-standardize", "none"] = "unit-sphere"
    """Normalisation of each set; see `pointset.data.normalize`."""
    sampler: Sampler = "uniform"
    """How a mesh becomes a pool of points; see `pointset.data.sampling`."""
    data_seed: Seed = 0
    """Seeds pools and fixed test subsets."""
    split_seed: Seed = 0
    """Seeds the train/test split of a folder that has none."""
    variant: str | None = None
    """Version of the dataset, if there are several, such as PB_T50_RS of ScanObjectNN."""
    up: Literal["y", "z", "auto"] | None = None
    """Axis that points up; None or "auto" uses the card's, or for a folder y for OBJ, GLB and glTF, otherwise z."""
    on_error: OnError = "raise"
    """How to handle clouds or meshes that cannot be used: "raise" reports them all, "skip" continues without them."""
    features: tuple[str, ...] = ()
    """Point features beside the coordinates: "normals" (from meshes or files); for point clouds also "colors",
    "columns" (numbers without names), or the name of a field."""

    def __post_init__(self) -> None:
        if isinstance(self.features, str):
            object.__setattr__(self, "features", (self.features,))
        super().__post_init__()
        if len(set(self.features)) < len(self.features) or not all(self.features):
            raise PointsetError(f"features must be different names, got {quoted(', '.join(self.features))}")
        if self.up == "auto":  # one name for one thing: results are compared by it
            object.__setattr__(self, "up", None)
        if self.has_normals:  # first, so that their place is known
            object.__setattr__(self, "features", (NORMALS, *self.further))

    @property
    def has_normals(self) -> bool:
        """Whether numbers 3 to 5 of every point are its unit normal."""
        return NORMALS in self.features

    @property
    def further(self) -> tuple[str, ...]:
        """The features behind the normals."""
        return tuple(name for name in self.features if name != NORMALS)

    def describe(self) -> dict[str, Any]:
        """The fields under the names that stand beside results; what was left out is said there for itself."""
        return {SAVED_AS.get(name, name): value for name, value in self.as_dict().items() if name != "on_error"}

    @classmethod
    def of(cls, description: dict[str, Any]) -> Self:
        """The options in what `PointSets.describe` returned; clouds that came as clouds have no sampler.

        What was made without some shapes may do without others.
        """
        names = [field.name for field in dataclasses.fields(cls) if field.name != "on_error"]
        stored = {name: SAVED_AS.get(name, name) for name in names}
        saved = {name: description[key] for name, key in stored.items() if key in description or name not in cls.LATER}
        sampler = saved["sampler"] if saved["sampler"] in SAMPLERS else "uniform"
        on_error = "skip" if description.get("skipped") else "raise"
        return cls.from_dict({**saved, "sampler": sampler, "on_error": on_error})
