"""The data options of a run, one frozen object that is passed whole and saved beside results."""

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from pointset.configuration import Checked, Points, Seed
from pointset.data.unusable import OnError

Sampler = Literal["uniform", "fps", "poisson"]
SAMPLERS: tuple[str, ...] = get_args(Sampler)
SAVED_AS = {"data_seed": "seed", "pool_points": "pool"}
"""Fields that have another name in what `PointSets.describe` says."""


@dataclass(frozen=True, kw_only=True)
class DataOptions(Checked):
    """Which point sets a run sees. Every row of a comparison shares them."""

    points: Points = 1024
    """Points per set."""
    pool_points: Points = 2048
    """Points sampled once per mesh, from which sets are drawn."""
    normalize: Literal["unit-sphere", "standardize", "none"] = "unit-sphere"
    """Normalisation of each set; see `pointset.data.normalize`."""
    sampler: Sampler = "uniform"
    """How a mesh becomes a pool of points; see `pointset.data.sampling`."""
    data_seed: Seed = 0
    """Seeds pools and fixed test subsets."""
    split_seed: Seed = 0
    """Seeds the split of a folder that has none."""
    variant: str | None = None
    """Which version of a data set that comes in several, such as PB_T50_RS of ScanObjectNN."""
    up: Literal["y", "z"] | None = None
    """Up axis; None takes the card's, or z for a folder."""
    on_error: OnError = "raise"
    """When clouds or meshes cannot be used: "raise" names them all, "skip" does without them."""

    def describe(self) -> dict[str, Any]:
        """The fields under the names that stand beside results; what was left out is said there for itself."""
        return {SAVED_AS.get(name, name): value for name, value in self.as_dict().items() if name != "on_error"}

    @classmethod
    def of(cls, description: dict[str, Any]) -> Self:
        """The options in what `PointSets.describe` returned; clouds that came as clouds have no sampler.

        What was made without some shapes may do without others.
        """
        names = [field.name for field in dataclasses.fields(cls) if field.name != "on_error"]
        saved = {name: description[SAVED_AS.get(name, name)] for name in names}
        sampler = saved["sampler"] if saved["sampler"] in SAMPLERS else "uniform"
        return cls(**saved | {"sampler": sampler, "on_error": "skip" if description.get("skipped") else "raise"})
