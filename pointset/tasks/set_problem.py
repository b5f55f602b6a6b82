"""Set problems of papers, with new random training sets for each step and fixed test sets.

A row is the name of a model, as in the papers' tables ("ISAB16 + PMA") or as in the zoo ("isab16-pma"). The model has
any encoder and pooling of the zoo, and the head of the problem.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.comparison.metric import Metric, Size
from pointset.comparison.task import Results, Section, Task, Trial
from pointset.data.batches import epoch_generator, mixed_seed
from pointset.errors import PointsetError, quoted
from pointset.nn.layers import Dropout, in_evaluation_mode
from pointset.runs.provenance import origin
from pointset.training.loop import Fitted, Training
from pointset.training.objectives import Loss, Objective
from pointset.training.recipe import Recipe
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.models import create_model
from pointset.zoo.names import CLASSIFIER, used_options, zoo_name
from pointset.zoo.options import ModelOptions
from pointset.zoo.registration import source_digests

T = TypeVar("T", bound=nn.Module)
HEAD, EMBEDDING, ENCODER = 0x4EAD, 0xE3BED, 0xE4C
"""Numbers, for `seeded`, of the parts of a model that the zoo does not build."""
USUAL_MODEL = ModelOptions(dim=64, dropout=0.0, initial="xavier")
UNUSED = {"epochs", "min_steps", "validation", "patience", "train_points", "last_points"}
UNUSED |= {"label_smoothing", "class_weights", "augment"}
"""Fields of `Recipe` that have no meaning if each step has new sets."""
CURVES_TEXT = (
    "Lines are means over seeds, and bands reach from the lowest to the highest seed. The first steps may lie outside "
    "the panel."
)


class SetBatch(NamedTuple):
    """A batch of sets with their targets."""

    X: Float[Tensor, "B n d"]
    """Elements, padded with zeros."""
    mask: Bool[Tensor, "B n"] | None = None
    """True at real elements. None if all sets have n elements."""
    target: Mapping[str, Tensor] = {}
    """Tensors that the loss and the metrics need, by name. The first axis of each tensor is B."""

    def to(self, device: torch.device) -> SetBatch:
        """Return the batch on a device."""
        mask = None if self.mask is None else self.mask.to(device)
        return SetBatch(self.X.to(device), mask, {name: value.to(device) for name, value in self.target.items()})


def task_recipe(**changes: Any) -> Recipe:
    """Return the recipe of set problems, Adam at a constant learning rate of 1e-3, with changes.

    Args:
        changes: fields of `Recipe`.

    Returns:
        The recipe.

    Raises:
        PointsetError: if a changed field is unknown; if set problems do not use it.
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
    if unused := sorted(UNUSED & changes.keys()):
        raise PointsetError(
            f"the recipe of a set problem has no {unused[0]}, because each step has new sets: leave it out"
        )
    return Recipe.from_dict({**usual, **changes})


class SetProblem(ABC):
    """Base class of problems with random sets. Worker processes must be able to import its subclasses."""

    name: ClassVar[str]
    title: ClassVar[str]
    metrics: ClassVar[Sequence[Metric]]
    """All metrics; the first one ranks the models."""
    rows: ClassVar[Sequence[str]]
    """Default models of an experiment, such as "ISAB16 + PMA"."""
    largest: ClassVar[int]
    """Number of elements of the largest set."""
    block: ClassVar[int] = 1000
    """Number of steps between checkpoints and lines of the history. A block takes the place of an epoch."""

    @abstractmethod
    def build(self, row: str, options: ModelOptions, seed: int, size: Size = None) -> nn.Module:
        """Return the model of a row; see `row_model`."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> SetBatch:
        """Draw a training batch of `count` sets."""

    @abstractmethod
    def test_sets(self) -> Sequence[SetBatch]:
        """Return the test sets, which are the same in every run."""

    @abstractmethod
    def loss(self, output: Tensor, batch: SetBatch) -> Float[Tensor, ""]:
        """Return the training loss, a mean over the sets."""

    @abstractmethod
    def score(self, outputs: Sequence[Tensor], batches: Sequence[SetBatch]) -> Mapping[str, float]:
        """Return the metrics, by name, from a model's outputs for `batches`."""

    @property
    def task(self) -> Task:
        """The problem as a task of the comparison engine."""
        return Task(
            name=self.name,
            title=self.title,
            metrics=self.metrics,
            rows=self.rows,
            model=USUAL_MODEL,
            largest=self.largest,
            block=self.block,
            recipe=task_recipe,
            zoo_name=zoo_name_of,
            used_options=row_options,
            build=self.build,
            prepare=self._prepare,
            train=self._train,
            test=self._test,
            sections=self._sections,
        )

    def measure(self, model: nn.Module, batches: Sequence[SetBatch]) -> dict[str, float]:
        """Return the metrics of a model on some sets, computed in evaluation mode."""
        device = next(model.parameters()).device
        with torch.no_grad(), in_evaluation_mode(model):
            there = [batch.to(device) for batch in batches]
            outputs = [model(batch.X, batch.mask).float().cpu() for batch in there]
        values = self.score(outputs, batches)
        return {metric.name: float(values[metric.name]) for metric in self.metrics}

    def _prepare(self, size: Size, recipe: Recipe, progress: bool) -> dict[str, Any]:
        if recipe.steps is None:
            raise PointsetError(f"{self.name} is trained by steps, not epochs: give steps in its recipe")
        return {}

    def _train(self, trial: Trial) -> Fitted:
        """Train on sets that depend only on (seed, step)."""

        def description() -> dict[str, Any]:
            """Describe the run, with the keys that `pointset.training.checkpoints` compares."""
            model = {"task": self.name, "row": trial.model, "options": trial.options.as_dict()}
            modules = source_digests(zoo_name_of(trial.model), trial.options)
            return {
                "model": {**model, "modules": modules} if modules else model,
                "recipe": trial.recipe.as_dict(),
                "seed": trial.seed,
                "data": {"task": self.name},
                **origin(),
            }

        model = self.build(trial.model, trial.options, trial.seed)
        objective = DrawnSets(self, trial.recipe.batch_size, trial.seed)
        return Training(model, objective, trial.recipe, trial.seed).fit(trial.folder, description, progress=False)

    def _test(self, trial: Trial, model: nn.Module) -> tuple[dict[str, float], int]:
        batches = self.test_sets()
        return self.measure(model, batches), sum(len(batch.X) for batch in batches)

    def _sections(self, results: Results) -> Iterator[Section]:
        """Yield the learning curves of the loss."""
        from pointset.comparison.charts import learning_curves  # matplotlib, which training does not need

        def steps(line: int) -> int:
            return self.task.length(line, results.recipe)

        chart = learning_curves(results, {"loss": "training loss"}, steps, "steps", shares=False)
        yield Section("Learning curves", CURVES_TEXT, chart, "learning-curves")


class DrawnSets(Objective):
    """The training objective of a set problem. The sets of a step depend only on (seed, step), not on the model."""

    def __init__(self, problem: SetProblem, batch_size: int, seed: int) -> None:
        self.problem = problem
        self.batch_size = batch_size
        self.seed = seed
        self.steps_per_epoch = problem.block

    def batches(self, epoch: int) -> Iterator[SetBatch]:
        for step in range(epoch * self.steps_per_epoch, (epoch + 1) * self.steps_per_epoch):
            yield self.problem.draw(self.batch_size, epoch_generator(self.seed, step))

    def loss(self, output: Tensor, batch: SetBatch) -> Loss:
        return Loss(self.problem.loss(output, batch.to(output.device)))


def parts_of(row: str) -> tuple[str, str]:
    """Return the zoo's names of the encoder and the pooling of a row."""
    encoder, hyphen, pooling = zoo_name(row).partition("-")
    if not hyphen:
        raise PointsetError(
            f"{quoted(row)} does not name an encoder and a pooling: write for example 'SAB + PMA' or 'sab-pma'"
        )
    return encoder, pooling


def zoo_name_of(row: str) -> str:
    """Return the zoo's name of a row that has an encoder and a pooling."""
    return "-".join(parts_of(row))


def row_options(row: str) -> set[str]:
    """Return the fields of `ModelOptions` that a row's model uses, without those of the zoo's head."""
    return used_options(zoo_name_of(row)) - CLASSIFIER


def row_model(
    row: str, inputs: int, options: ModelOptions, seed: int, head: Callable[[int], nn.Module]
) -> SetClassifier:
    """Return a model with a row's encoder and pooling, and `head(width)`; `width` is that of the pooled output."""
    model = create_model(zoo_name_of(row), 1, options, inputs=inputs, seed=seed)
    assert isinstance(model, SetClassifier), "a row always has an encoder and a pooling"
    width = next(module.in_features for module in model.head.modules() if isinstance(module, nn.Linear))
    rest = seeded(seed, lambda: nn.Sequential(nn.Flatten(), Dropout(options.dropout_rate), head(width)))
    return SetClassifier(list(model.encoder), model.pool, rest, inputs)


def seeded(seed: int, build: Callable[[], T], part: int = HEAD) -> T:
    """Build a part of a model whose initial weights depend only on (seed, part), not on the other parts."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(mixed_seed(seed, part))
        return build()


def fully_connected(*widths: int) -> nn.Sequential:
    """Return linear layers with ReLUs between them, which map [..., widths[0]] to [..., widths[-1]]."""
    layers: list[nn.Module] = [nn.Linear(widths[0], widths[1])]
    for before, after in itertools.pairwise(widths[1:]):
        layers += [nn.ReLU(), nn.Linear(before, after)]
    return nn.Sequential(*layers)
