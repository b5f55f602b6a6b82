"""The specification of a run as data: model, size and seed, and the options from which it is made."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

Size = int | None
"""Number of elements of the sets; None for tasks whose sets vary in size."""


@dataclass(frozen=True)
class Place:
    """The coordinates of a run in the grid."""

    model: str
    """The label of its row."""
    points: Size
    """Size of the sets."""
    seed: int

    @property
    def name(self) -> str:
        """The name of the run in messages."""
        sets = "" if self.points is None else f", {self.points} points"
        return f"{self.model}{sets}, seed {self.seed}"


def of_size(size: Size) -> str:
    """Suffix of file names for one set size."""
    return "" if size is None else f"-n{size}"


def of_run(size: Size, seed: int) -> str:
    """Suffix of the name of a run's folder, which starts with the row's slug."""
    return f"{of_size(size)}-seed{seed}"


@dataclass(frozen=True)
class RunSpec:
    """Everything that a task needs to train and test the model of one run of the grid."""

    label: str
    model: str
    """Name of the model in the task."""
    parts: str
    """Name of the model in the zoo; it carries user-defined encoders and poolings to other processes."""
    size: Size
    seed: int
    model_options: ModelOptions
    recipe: Recipe
    threads: int
    """Torch threads of the run's process."""
    folder: Path
    """Folder of this run."""

    def at(self, size: Size) -> Self:
        """The run of the same row and seed at another size."""
        row = self.folder.name.removesuffix(of_run(self.size, self.seed))
        return replace(self, size=size, folder=self.folder.with_name(row + of_run(size, self.seed)))

    @property
    def place(self) -> Place:
        """The coordinates of the run in the grid."""
        return Place(self.label, self.size, self.seed)
