"""One run of a comparison as data: its model, size and seed, and what it is made from."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

Size = int | None
"""Elements of a set, where an experiment has several sizes; None where a task draws sets of all sizes."""


@dataclass(frozen=True)
class Place:
    """Where in the grid a run stands."""

    model: str
    """The label of its row: the model's name, and what sets it apart."""
    points: Size
    """Size of the sets."""
    seed: int

    @property
    def name(self) -> str:
        """The run in words."""
        sets = "" if self.points is None else f", {self.points} points"
        return f"{self.model}{sets}, seed {self.seed}"


def of_size(size: Size) -> str:
    """The end of the name of what is about one size."""
    return "" if size is None else f"-n{size}"


def of_run(size: Size, seed: int) -> str:
    """The end of the name of a run's folder, after its row."""
    return f"{of_size(size)}-seed{seed}"


@dataclass(frozen=True)
class RunSpec:
    """What one run of the grid is made from: all that a task needs to train and test its model."""

    label: str
    model: str
    """As the task knows it."""
    parts: str
    """Its name in the zoo, which carries a user's own encoders and poolings to other processes."""
    size: Size
    seed: int
    model_options: ModelOptions
    recipe: Recipe
    threads: int
    """Of torch, in the run's process."""
    folder: Path
    """Of this run alone."""

    def at(self, size: Size) -> Self:
        """The run of the same row and seed at another size."""
        row = self.folder.name.removesuffix(of_run(self.size, self.seed))
        return replace(self, size=size, folder=self.folder.with_name(row + of_run(size, self.seed)))

    @property
    def place(self) -> Place:
        """Where in the grid it stands."""
        return Place(self.label, self.size, self.seed)
