"""A network for a user's shapes: recipe, pretrained weights, and the number of steps that a budget allows."""

import dataclasses
import math
import time
import warnings
from pathlib import Path
from typing import Annotated, Any, Self

import msgspec
from msgspec import Meta
from torch import nn

from pointset.configuration import AttentionOptions, LocalFeatures
from pointset.data.normalize import ABOUT
from pointset.data.point_sets import PointSets
from pointset.runs import records
from pointset.training.fitting import fit
from pointset.training.out_of_fold import FOLDS
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import ANY_POSE

BUDGET = 120.0
"""Default budget in CPU seconds."""
NETWORK_MODEL = "dumlp16-max+dumlp16"
STARTING_MODEL = f"{NETWORK_MODEL}.modelnet40-1024"
NORMED = AttentionOptions(norm="batch")
OPTIONS = ModelOptions(dim=64, attention=NORMED, head_dim=256, head_norm="batch", dropout=0.3, pooled_dropout=0.0)
RECIPE = Recipe(
    train_points=(64, 256),
    optimizer="muon",
    learning_rate=5e-3,
    weight_decay=0.05,
    augment=("stretch-wide", "shift-wide", "jitter"),
)
"""Recipe of the network, to which `transfer_recipe` adds the number of steps. See scripts/experiments/NOTES.md."""
FEWEST_STEPS, LEAST_STEPS, EPOCHS = 100, 600, 24
"""Minimum number of steps to train a network at all, steps for a small folder, and epochs for a large folder."""


def transfer_recipe(train: PointSets, **changes: Any) -> Recipe:
    """Return the recipe with which `select_model` fine-tunes its network: 24 epochs, and at least 600 steps.

    Args:
        train: the training sets. The number of steps depends on the number of sets.
        changes: fields of `Recipe` that replace values of this recipe.

    Returns:
        The recipe, for `fit`.

    Example:
        >>> model = pointset.create_model("rff-pma4", train.classes, pretrained=True)
        >>> recipe = pointset.training.transfer_recipe(train, steps=2, train_points=None)
        >>> pointset.fit(model, train, recipe, progress=False).model.classes
        ['flat', 'round']
    """
    assert RECIPE.train_points is not None
    usual: dict[str, Any] = {"train_points": tuple(min(size, train.size) for size in RECIPE.train_points)}
    if "epochs" not in changes:
        usual["steps"] = max(LEAST_STEPS, EPOCHS * len(train) // RECIPE.batch_size)
    return dataclasses.replace(RECIPE, **{**usual, **changes})


def new_network(train: PointSets, seed: int) -> nn.Module:
    """Return a network with local features, pretrained if points have only coordinates, and otherwise untrained."""
    about = train.options.normalize in ABOUT
    if train.inputs == 3:
        return create_for(train, ANY_POSE if about else STARTING_MODEL, seed=seed)
    kind: LocalFeatures = "invariant" if about else "upright"
    return create_for(train, NETWORK_MODEL, dataclasses.replace(OPTIONS, local_features=kind), seed=seed)


@dataclasses.dataclass(frozen=True)
class Plan:
    """The numbers of steps and of cross-validation folds for the network."""

    steps: Annotated[int, Meta(ge=0)]
    """0 means that no network is trained."""
    folds: Annotated[int, Meta(ge=1, le=FOLDS)]
    needed: float = 0.0
    """Budget in CPU seconds that is enough for all steps with one fold, or 0 if it is unknown."""
    seconds: float = 0.0
    """CPU seconds that making the plan took."""

    @classmethod
    def within(cls, budget: float, spent: float, train: PointSets, seed: int) -> Self:
        """Return the plan for the rest of a budget, from the measured time of a few steps.

        The plan includes the final fit to all shapes. The number of steps depends on the shapes. If the budget is
        small, the number of folds is reduced. If that is not enough, the number of steps is halved, and at last no
        network is trained.
        """
        began, seconds = time.process_time(), []
        for steps in (1, 1, 9):  # the first fit fills caches, such as the cache of local features
            start = time.process_time()
            with warnings.catch_warnings(action="ignore"):  # after so few steps, the accuracy is at chance
                fit(new_network(train, seed), train, transfer_recipe(train, steps=steps), seed=seed, progress=False)
            seconds.append(time.process_time() - start)
        step = max((seconds[2] - seconds[1]) / 8, 1e-4)
        took = time.process_time() - began
        spent += took
        whole = transfer_recipe(train).steps or 0
        plans = [(steps, folds) for steps in (whole, whole // 2) for folds in (FOLDS, 3, 2, 1)]
        affordable = (plan for plan in plans if spent + plan[0] * (plan[1] + 1) * step <= budget)
        # The default budget allows half of the steps on any machine, because other programs change the time of a step.
        steps, folds = next(affordable, plans[-1] if budget >= BUDGET else (0, 1))
        return cls(steps, folds, round(spent + 2 * whole * step, 1), round(took, 3))

    @classmethod
    def read(cls, file: Path) -> Self:
        """Return the plan of an interrupted training."""
        remedy = "train in another folder"
        return msgspec.convert(records.read_json(file, remedy, cls), cls)

    @property
    def has_network(self) -> bool:
        """True if there are enough steps for a network."""
        return self.steps >= FEWEST_STEPS

    def cut(self, budget: float, train: PointSets) -> str:
        """Return the end of a message: the number of steps that did not fit into the budget; empty if all steps fit."""
        whole = transfer_recipe(train).steps or 0
        if self.steps >= whole:
            return ""
        what = f"the network had {self.steps:,} of {whole:,} steps" if self.has_network else "no network was trained"
        remedy = f"; --budget {math.ceil(self.needed):,}s would be enough for all steps" if self.needed else ""
        return f"; {what}, for the budget of {budget:g} s{remedy}"
