"""The result of training: a model and a row for each epoch."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import nn

from pointset.training.checkpoints import Row
from pointset.training.recipe import Recipe

OnEpoch = Callable[[Row], object]
"""Called with each row of the history; True stops the run."""
VALIDATED = ("validation_accuracy", "validation_r2")
"""What early stopping follows: the first that the history has."""


@dataclass(frozen=True)
class Fitted:
    """The result of a training.

    Example:
        >>> fitted = pointset.fit(model, train, pointset.Recipe(epochs=2), progress=False)
        >>> [row["epoch"] for row in fitted.history], fitted.best_epoch, fitted.seconds > 0
        ([1, 2], 2, True)
    """

    model: nn.Module
    """The given model, now trained, in evaluation mode."""
    history: list[Row]
    """One row per epoch: epoch, loss, accuracy, learning_rate, seconds (of training, including data, without
    validation), on a CPU processor_seconds, and validation_accuracy if there is a validation split. For numbers to
    predict, mae and validation_r2 of the standardised targets take the place of the accuracies.
    `stopped` is True in the row after which `on_epoch` ended the run."""
    best_epoch: int
    """The epoch whose weights the model has: the last, or the best on validation under early stopping."""

    def __repr__(self) -> str:
        """One line with the model, the number of epochs and the last accuracies."""
        count, last = len(self.history), self.history[-1] if self.history else {}
        columns = {"accuracy": "training accuracy", "validation_accuracy": "validation accuracy"}
        words = [f", {words} {100 * last[name]:.1f} %" for name, words in columns.items() if name in last]
        words += [f", validation R2 {last[VALIDATED[1]]:.3f}"] if VALIDATED[1] in last else []
        model = type(self.model).__name__ if "\n" in repr(self.model) else repr(self.model)
        return f"Fitted {model}; {count} epoch{'s' * (count != 1)}{''.join(words)}"

    @property
    def seconds(self) -> float:
        """Time spent in the epochs."""
        return float(sum(row["seconds"] for row in self.history))

    @property
    def work(self) -> float:
        """Seconds that depend little on other work of the machine: of the processor, or of the clock on a GPU."""
        return float(sum(map(work_of, self.history)))


def work_of(row: Row) -> float:
    """`Fitted.work` of one row of a history."""
    return float(row["processor_seconds"] if "processor_seconds" in row else row["seconds"])


def make_fitted(model: nn.Module, history: list[Row], recipe: Recipe) -> Fitted:
    """Make the result of a training, with the model in evaluation mode."""
    kept = len(history) if recipe.patience is None else best_epoch(history)
    return Fitted(model.eval(), history, kept)


def best_epoch(history: list[Row]) -> int:
    """The first epoch, counted from 1, of the highest validation accuracy or R2; 0 for an empty history."""
    scores = [next((row[name] for name in VALIDATED if name in row), -math.inf) for row in history]
    return scores.index(max(scores)) + 1 if scores else 0
