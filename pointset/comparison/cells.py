"""One model, one size of set, one seed: trained and tested in a folder of its own, in a process of its own.

run.json, history.jsonl and model.safetensors are the training's (see checkpoints.py); predictions.npz has logits and
labels of the test shapes; robustness.json the errors on corrupted and smaller sets, where they are asked for;
result.json the figures; failure.txt why the cell failed, until it is run again.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from torch import nn

from pointset.data.dataset import PointSets, load_sets
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.evaluation import Evaluation, evaluate
from pointset.runs.atomic import read_json, write_atomically, write_json
from pointset.runs.jobs import FolderJob, run_apart, run_job, run_jobs
from pointset.training.loop import Fitted, fit
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_model
from pointset.zoo.options import ModelOptions

__all__ = [
    "Cell",
    "Failure",
    "Job",
    "Place",
    "load_predictions",
    "run_apart",
    "run_job",
    "run_jobs",
    "save_predictions",
]


@dataclass(frozen=True)
class Place:
    """Where in the grid something stands."""

    model: str
    """The label of its row: the model's name, and what sets it apart."""
    points: int
    """Size of the sets."""
    seed: int

    @property
    def name(self) -> str:
        """Which cell this is, in words."""
        return f"{self.model}, {self.points} points, seed {self.seed}"


@dataclass(frozen=True)
class Cell(Place):
    """One trained and tested model."""

    accuracy: float
    """Share of all test shapes that are right."""
    mean_class_accuracy: float
    loss: float
    """Cross entropy of the test shapes in nats."""
    brier: float
    calibration_error: float
    """Expected calibration error, 15 bins of equal width."""
    calibration_error_equal_mass: float
    parameters: int
    seconds: float
    """Training time, data included, validation and start-up not."""
    epochs: int
    shapes: int
    """Test shapes."""

    @property
    def summary(self) -> str:
        """Its accuracy."""
        return f"{self.accuracy:.1%}"


@dataclass(frozen=True)
class Failure(Place):
    """A cell that could not be finished."""

    reason: str

    @property
    def summary(self) -> str:
        """Why."""
        return f"failed: {self.reason}"


@dataclass(frozen=True)
class Job(FolderJob["Cell | Failure"]):
    """What makes a cell."""

    label: str
    name: str
    """Of the zoo."""
    seed: int
    data: str
    data_options: DataOptions
    model_options: ModelOptions
    recipe: Recipe
    threads: int
    """Of torch, in the job's process."""
    folder: Path
    """Of this run alone."""
    robustness: bool = False
    """Whether to test on corrupted and smaller sets too."""

    @property
    def points(self) -> int:
        """Size of the sets."""
        return self.data_options.points

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.result.exists() and (not self.robustness or (self.folder / "robustness.json").exists())

    def perform(self) -> Cell:
        """Train and test the model; of what is there, nothing is done again."""
        train, test = load_sets(self.data, self.data_options, progress=False)
        model = create_model(self.name, classes=len(train.classes), seed=self.seed, **self.model_options.as_dict())
        fitted = fit(model, train, self.recipe, seed=self.seed, run=self.folder, progress=False)
        if not self.result.exists():
            evaluation = evaluate(fitted.model, test)
            save_predictions(evaluation, self.folder)
            write_json(self.result, asdict(self._cell(evaluation, fitted)))
        if self.robustness and not self.finished:
            _test_robustness(self, fitted.model, test)
        return self.read()

    def _cell(self, evaluation: Evaluation, fitted: Fitted) -> Cell:
        return Cell(
            model=self.label,
            points=self.points,
            seed=self.seed,
            accuracy=evaluation.accuracy,
            mean_class_accuracy=evaluation.mean_class_accuracy,
            loss=evaluation.loss,
            brier=evaluation.brier,
            calibration_error=evaluation.calibration_error("width"),
            calibration_error_equal_mass=evaluation.calibration_error("mass"),
            parameters=sum(parameter.numel() for parameter in fitted.model.parameters()),
            seconds=round(fitted.seconds, 3),
            epochs=len(fitted.history),
            shapes=len(evaluation.labels),
        )

    def read(self) -> Cell:
        """The cell that is there."""
        return Cell(**read_json(self.result))

    def as_failure(self, reason: str) -> Failure:
        """The outcome of a job that failed."""
        return Failure(self.label, self.points, self.seed, reason)


def _test_robustness(job: Job, model: nn.Module, test: PointSets) -> None:
    from pointset.evaluation.corruptions import MODELNET40_C
    from pointset.evaluation.robustness import SIZES, accuracy_by_size, robustness

    sizes = sorted({*(size for size in SIZES if size < job.points), job.points})
    found = robustness(model, test, [*MODELNET40_C, "drop_global", "drop_local"])
    content = {"by_size": accuracy_by_size(model, test, sizes), **found.as_dict()}
    write_json(job.folder / "robustness.json", content)


def save_predictions(evaluation: Evaluation, folder: Path) -> None:
    """Keep logits and labels beside the run."""

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            np.savez(file, logits=evaluation.logits, labels=evaluation.labels)

    write_atomically(folder / "predictions.npz", write)


def load_predictions(folder: Path, classes: list[str]) -> Evaluation:
    """Read what `save_predictions` wrote.

    Raises:
        PointsetError: the file is missing or damaged.
    """
    path = folder / "predictions.npz"
    try:
        with path.open("rb") as opened, np.load(opened) as file:
            return Evaluation(file["logits"], file["labels"], classes)
    except (OSError, ValueError, KeyError, EOFError, BadZipFile) as error:
        raise PointsetError(f"{path} is damaged ({error}): delete its folder and run the same again") from error
