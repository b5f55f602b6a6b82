"""A network for shapes of one's own: its recipe, the weights that it begins from, and what of it a budget pays for."""

import dataclasses
import math
import time
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta
from torch import nn

from pointset.configuration import LocalFeatures
from pointset.data.normalize import ABOUT
from pointset.data.point_sets import PointSets
from pointset.runs import records
from pointset.training.baselines import FOLDS
from pointset.training.loop import fit
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for, create_pretrained
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import ANY_POSE
from pointset.zoo.transfer import start_from, without_local_features

BUDGET = 120.0
"""Core-seconds."""
NETWORK_MODEL = "dumlp16-max+dumlp16"
STARTING_MODEL = f"{NETWORK_MODEL}.modelnet40-1024"
OPTIONS = ModelOptions(dim=64, norm="batch", head_dim=256, head_norm="batch", dropout=0.3, pooled_dropout=0.0)
RECIPE = Recipe(
    train_points=(64, 256),
    optimizer="muon",
    learning_rate=5e-3,
    weight_decay=0.05,
    augment=("stretch-wide", "shift-wide", "jitter"),
)
"""Of the network; the number of steps depends on the shapes alone. See scripts/experiments/NOTES.md."""
FEWEST_STEPS, LEAST_STEPS, EPOCHS = 100, 600, 24
"""Fewer steps are not worth their time; steps for a small folder; epochs for a large one."""


def transfer_recipe(train: PointSets, **changes: Any) -> Recipe:
    """The recipe for shapes of one's own, with changes: 24 epochs, and at least 600 steps."""
    assert RECIPE.train_points is not None
    usual: dict[str, Any] = {"train_points": tuple(min(size, train.size) for size in RECIPE.train_points)}
    if "epochs" not in changes:
        usual["steps"] = max(LEAST_STEPS, EPOCHS * len(train) // RECIPE.batch_size)
    return dataclasses.replace(RECIPE, **{**usual, **changes})


def new_network(train: PointSets, local_features: bool, seed: int) -> nn.Module:
    """A network to train, whose points know their neighbourhoods, or their coordinates alone.

    It begins from trained weights if points are coordinates alone.
    """
    about = train.options.normalize in ABOUT
    if train.inputs == 3:
        start = ANY_POSE if about else STARTING_MODEL
        trained: Any = create_pretrained(start)
        return start_from(trained if local_features else without_local_features(trained), train, seed=seed, start=start)
    kind: LocalFeatures = "none" if not local_features else "invariant" if about else "upright"
    return create_for(train, NETWORK_MODEL, dataclasses.replace(OPTIONS, local_features=kind), seed=seed)


@dataclasses.dataclass(frozen=True)
class Plan:
    """How long the network is trained, and on how many folds it is held out."""

    steps: Annotated[int, Meta(ge=0)]
    """0 for no network."""
    folds: Annotated[int, Meta(ge=1, le=FOLDS)]
    needed: float = 0.0
    """Core-seconds of budget for all steps of both kinds, on one fold; 0 if they are unknown."""
    kinds: Annotated[int, Meta(ge=1, le=2)] = 2
    """1 if only the network with neighbourhoods is trained, and not compared with one on coordinates alone."""
    seconds: float = 0.0
    """Core-seconds that the plan took."""

    @classmethod
    def within(cls, budget: float, spent: float, train: PointSets, seed: int) -> Self:
        """The plan for what a budget leaves, by the time of some steps.

        The network is fitted to all shapes in the end, and two kinds of it are compared on the first fold. The number
        of steps depends on the shapes; the clock only cuts: folds, the second kind, half of the steps, the network.
        """
        began, seconds = time.process_time(), []
        for steps in (1, 1, 9):  # the first makes what is made once, such as the local features
            start = time.process_time()
            fit(new_network(train, True, seed), train, transfer_recipe(train, steps=steps), seed=seed, progress=False)
            seconds.append(time.process_time() - start)
        step = max((seconds[2] - seconds[1]) / 8, 1e-4)
        took = time.process_time() - began
        spent += took
        whole = transfer_recipe(train).steps or 0
        tried = [*((whole, folds, 2) for folds in (FOLDS, 3, 2, 1)), (whole, 1, 1), (whole // 2, 1, 1)]
        fitting = (each for each in tried if spent + each[0] * (each[1] + each[2]) * step <= budget)
        # The usual budget pays for some steps whatever the clock says: other work slows them down, and not the network.
        steps, folds, kinds = next(fitting, tried[-1] if budget >= BUDGET else (0, 1, 1))
        return cls(steps, folds, round(spent + 3 * whole * step, 1), kinds, round(took, 3))

    @classmethod
    def read(cls, file: Path) -> Self:
        """The plan of an interrupted training."""
        remedy = f"delete {file.parent} and run the same training again"
        return msgspec.convert(records.read_json(file, remedy, cls), cls)

    @property
    def has_network(self) -> bool:
        """True if there are enough steps for a network."""
        return self.steps >= FEWEST_STEPS

    def cut(self, budget: float, train: PointSets) -> str:
        """What the budget cut, as the end of a sentence; empty if nothing but folds."""
        whole = transfer_recipe(train).steps or 0
        remedy = f"; --budget {math.ceil(self.needed):,}s would be enough for all of it" if self.needed else ""
        if not self.has_network:
            what = "no network was trained"
        elif self.steps < whole:
            what = (
                f"the network had {self.steps:,} of {whole:,} steps and was not compared with one on coordinates alone"
            )
        elif self.kinds == 1:
            what = "the network was not compared with one on coordinates alone"
        else:
            return ""
        return f"; {what}, for the budget of {budget:g} s{remedy}"
