"""What the set problems of the papers share: sets drawn anew for every step, and test sets that never change."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.comparison.evidence import Evidence
from pointset.comparison.run_spec import RunSpec, Size
from pointset.comparison.section import Section
from pointset.comparison.task import Task
from pointset.data.batches import epoch_generator
from pointset.errors import PointsetError
from pointset.nn.modes import in_evaluation_mode
from pointset.runs.provenance import origin
from pointset.tasks.rows import parts_of
from pointset.training.distributed import OneProcess
from pointset.training.loop import Fitted, fit_objective
from pointset.training.objectives import Loss
from pointset.training.recipe import Recipe
from pointset.zoo.carried import source_digests
from pointset.zoo.names import CLASSIFIER
from pointset.zoo.options import ModelOptions

TRAINING = (
    "steps",
    "batch_size",
    "optimizer",
    "learning_rate",
    "weight_decay",
    "momentum",
    "nesterov",
    "schedule",
    "warmup",
    "step_every",
    "step_factor",
    "clip_norm",
    "average",
    "precision",
    "device",
)
"""Fields of `Recipe` that mean something where every step has fresh sets."""


@dataclass(frozen=True)
class SetBatch:
    """Some sets and the target of each.

    Example:
        >>> batch = pointset.tasks.create_task("max-regression").draw(4, torch.Generator().manual_seed(0))
        >>> batch.X.shape[0], batch.target["maximum"].shape[0]
        (4, 4)
    """

    X: Float[Tensor, "B n d"]
    """Elements, zeros where a set has fewer than n."""
    mask: Bool[Tensor, "B n"] | None = None
    """True at real elements; None when every set has n."""
    target: Mapping[str, Tensor] = field(default_factory=dict)
    """What the loss and the metrics need, by name; the first axis of each is B."""

    def to(self, device: torch.device) -> SetBatch:
        """The same on a device."""
        if self.X.device == device:
            return self
        mask = None if self.mask is None else self.mask.to(device)
        return SetBatch(self.X.to(device), mask, {name: value.to(device) for name, value in self.target.items()})


def task_recipe(**changes: Any) -> Recipe:
    """The recipe of the Set Transformer's set problems, with changes: Adam at 1e-3 throughout, and nothing else.

    Args:
        changes: fields of `Recipe`.

    Returns:
        The recipe.

    Raises:
        PointsetError: a change is of a field that is unknown, or that a set problem does not use.

    Example:
        >>> pointset.tasks.task_recipe(steps=2000).optimizer
        'adam'
    """
    usual: dict[str, Any] = {
        "steps": 20_000,
        "batch_size": 128,
        "optimizer": "adam",
        "schedule": "constant",
        "warmup": 0.0,
        "clip_norm": None,
        "label_smoothing": 0.0,
        "augment": (),
    }
    for name in changes:
        if name not in TRAINING:
            raise PointsetError(f"a set problem does not use {name} in its recipe: known are {', '.join(TRAINING)}")
    return Recipe.from_file({**usual, **changes})


class SetProblem(Task):
    """A set problem as a task of the engine.

    Rows are "encoder + pooling" or names of the zoo, such as "ISAB16 + PMA" or "isab16-pma"; see `pointset.tasks.rows`.

    Example:
        >>> task = pointset.tasks.create_task("max-regression")
        >>> isinstance(task, pointset.tasks.SetProblem)
        True
    """

    most: ClassVar[int]
    """Elements of the largest set."""
    unit: ClassVar[str] = "steps"
    sets_are: ClassVar[str] = "sets"
    usual_model: ClassVar[ModelOptions] = ModelOptions(dim=64, dropout=0.0, initial="xavier")
    block: ClassVar[int] = 1000
    """Steps after which a checkpoint is written, and a line of history: this takes the place of an epoch."""

    @abstractmethod
    def model(self, row: str, options: ModelOptions, seed: int) -> nn.Module:
        """The model of a row, called as `model(X [B, n, d], mask [B, n] or None)`.

        Raises:
            PointsetError: the row is unknown.
        """

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        """A training batch of so many sets."""

    @abstractmethod
    def test_sets(self) -> Sequence[SetBatch]:
        """The sets that metrics are taken on: the same in every run."""

    @abstractmethod
    def loss(self, output: Tensor, batch: SetBatch) -> Float[Tensor, ""]:
        """What training makes small, a mean over the sets."""

    @abstractmethod
    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """The metrics, by name, of what a model said of some sets."""

    def watched_sets(self) -> Sequence[SetBatch]:
        """Sets on which the metrics are taken after every block of steps too, for curves."""
        return ()

    def describe(self) -> dict[str, Any]:
        """What the data is, as plain data."""
        return {}

    def zoo_name(self, row: str) -> str:
        """The zoo's name of a row's encoder and pooling."""
        return "-".join(parts_of(row))

    def used_options(self, row: str) -> set[str]:
        """Options that a row's encoder and pooling are built from, and the rate between pooling and head."""
        return super().used_options(row) - CLASSIFIER

    def recipe(self, **changes: Any) -> Recipe:
        """See `task_recipe`."""
        return task_recipe(**changes)

    def check(self, seeds: Sequence[int], recipe: Recipe) -> None:
        """The recipe must have steps."""
        if recipe.steps is None:
            raise PointsetError(f"{self.name} is trained by steps, not epochs: give steps in its recipe")

    def prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        """What the data is."""
        return {"sets": self.describe()}

    def build(self, model: str, options: ModelOptions, seed: int, size: Size) -> nn.Module:
        """See `model`."""
        return self.model(model, options, seed)

    def elements(self, size: Size) -> int:
        """Those of the largest set."""
        return self.most

    def train(self, run: RunSpec, recipe: Recipe, folder: Path | None) -> Fitted:
        """Train on sets that come from (seed, step) alone."""
        model = self.model(run.model, run.model_options, run.seed)
        description = partial(self._describe_run, run, recipe)
        objective = DrawnSets(self, recipe.batch_size, run.seed)
        return fit_objective(model, objective, recipe, description, seed=run.seed, run=folder, progress=False)

    def _describe_run(self, run: RunSpec, recipe: Recipe, processes: int) -> dict[str, Any]:
        """What a run is: enough to repeat it, in the parts that `pointset.training.checkpoints` compares."""
        model = {"task": self.name, "row": run.model, "options": run.model_options.as_dict()}
        parts = source_digests(run.parts, run.model_options)
        return {
            "model": {**model, "parts": parts} if parts else model,
            "recipe": recipe.as_dict(),
            "seed": run.seed,
            "data": {"task": self.name, "options": self.options(), **self.describe()},
            "processes": processes,
            **origin(),
        }

    def steps_per_epoch(self, size: Size, recipe: Recipe) -> int:
        """A block."""
        return self.block

    def done(self, epochs: int, recipe: Recipe) -> int:
        """Steps of so many blocks, the last of which may be shorter."""
        return min(recipe.steps or 0, epochs * self.block)

    def test(self, run: RunSpec, model: nn.Module) -> tuple[dict[str, float], int]:
        """The metrics on the test sets."""
        batches = self.test_sets()
        return measure(self, model, batches), sum(len(batch.X) for batch in batches)

    def length(self, recipe: Recipe) -> str:
        """Steps and their sets."""
        return f"{recipe.steps:,} steps of {recipe.batch_size} sets"

    def taken(self, recipe: Recipe) -> str:
        """At the end."""
        return "last step"

    def sections(self, evidence: Evidence) -> Iterator[Section]:
        """The loss and the watched metrics over the steps."""
        from pointset.comparison.report.charts import learning_curves  # matplotlib, which no training waits for

        columns = {"loss": "training loss", **{metric.name: metric.title for metric in self.measured}}
        recipe = evidence.recipe

        def places(count: int) -> list[int]:
            return [self.done(epoch + 1, recipe) for epoch in range(count)]

        chart = learning_curves(evidence, columns, places, "steps", fitted=True)
        yield Section("Learning curves", CURVES_TEXT, chart, "learning-curves")


CURVES_TEXT = (
    "Lines are means over seeds, bands reach from the lowest to the highest; the start of a training may lie outside "
    "of a panel."
)


class DrawnSets:
    """The objective of a set problem. The sets of a step come from (seed, step) alone: all models see the same ones."""

    metrics = ()

    def __init__(self, problem: SetProblem, batch_size: int, seed: int) -> None:
        self.problem = problem
        self.batch_size = batch_size
        self.seed = seed
        self.steps_per_epoch = problem.block
        self.watched = problem.watched_sets()

    def batches(self, epoch: int) -> Iterator[SetBatch]:
        """One for each step of a block."""
        for step in range(epoch * self.steps_per_epoch, (epoch + 1) * self.steps_per_epoch):
            yield self.problem.draw(self.batch_size, epoch_generator(self.seed, step))

    def size(self, batch: SetBatch) -> int:
        """Sets in a batch."""
        return len(batch.X)

    def share(self, batch: SetBatch, processes: OneProcess) -> SetBatch:
        """The whole batch: set problems train in one process."""
        return batch

    def output(self, model: nn.Module, batch: SetBatch, device: torch.device) -> Tensor:
        """The model's output, in float32."""
        there = batch.to(device)
        return model(there.X, there.mask).float()

    def loss(self, output: Tensor, batch: SetBatch) -> Loss:
        """The problem's loss."""
        return Loss(self.problem.loss(output, batch.to(output.device)), ())

    def fault(self) -> str:
        """Nothing: the sets are drawn, and finite."""
        return ""

    def watch(self, model: nn.Module) -> Mapping[str, float]:
        """The metrics on the sets that the problem wants to be watched."""
        return measure(self.problem, model, self.watched) if self.watched else {}


def measure(problem: SetProblem, model: nn.Module, batches: Sequence[SetBatch]) -> dict[str, float]:
    """The metrics of a model on some sets; the model is in evaluation mode while they are taken."""
    device = next(model.parameters()).device
    with torch.no_grad(), in_evaluation_mode(model):
        there = [batch.to(device) for batch in batches]
        outputs = [model(batch.X, batch.mask).float().cpu() for batch in there]
    found = problem.score(outputs, batches)
    return {metric.name: float(found[metric.name]) for metric in problem.measured}
