"""The result of training: a model, and a row for each epoch."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import nn

from pointset.training.recipe import Recipe

OnEpoch = Callable[[dict[str, Any]], object]
"""Called with each row of the history; True stops the run."""


@dataclass(frozen=True)
class Fitted:
    """What a training leaves.

    Example:
        >>> fitted = pointset.fit(model, train, pointset.Recipe(epochs=2), progress=False)
        >>> [row["epoch"] for row in fitted.history], fitted.best_epoch, fitted.seconds > 0
        ([1, 2], 2, True)
    """

    model: nn.Module
    """The model that was given, now trained, in evaluation mode."""
    history: list[dict[str, Any]]
    """One row per epoch: epoch, loss, accuracy, learning_rate, seconds (of training, data included, validation not),
    on a CPU processor_seconds (of this process in those, all its threads), and validation_accuracy where there is one.
    `stopped` is True in the row after which `on_epoch` ended the run."""
    best_epoch: int
    """The epoch whose weights the model has: the last, or the best on validation under early stopping."""

    def __repr__(self) -> str:
        """What it is, in a line."""
        count, last = len(self.history), self.history[-1] if self.history else {}
        columns = {"accuracy": "training accuracy", "validation_accuracy": "validation accuracy"}
        words = [f", {words} {100 * last[name]:.1f} %" for name, words in columns.items() if name in last]
        model = type(self.model).__name__ if "\n" in repr(self.model) else repr(self.model)
        return f"Fitted {model}; {count} epoch{'s' * (count != 1)}{''.join(words)}"

    @property
    def seconds(self) -> float:
        """Time spent in the epochs."""
        return float(sum(row["seconds"] for row in self.history))

    @property
    def work(self) -> float:
        """Seconds that compare between machines that do other work: of the processor, or of the clock on a GPU."""
        return float(sum(map(work_of, self.history)))


def work_of(row: dict[str, Any]) -> float:
    """`Fitted.work` of one row of a history."""
    return float(row.get("processor_seconds", row["seconds"]))


def fitted(model: nn.Module, history: list[dict[str, Any]], recipe: Recipe) -> Fitted:
    """What a training leaves; the model goes into evaluation mode."""
    kept = len(history) if recipe.patience is None else best_epoch(history)
    return Fitted(model.eval(), history, kept)


def best_epoch(history: list[dict[str, Any]]) -> int:
    """The first epoch, counted from 1, of the highest validation accuracy; 0 for an empty history."""
    scores = [row["validation_accuracy"] for row in history]
    return scores.index(max(scores)) + 1 if scores else 0


def answered(answer: object) -> bool:
    """True if a function said that the run ends here: other values that count as true may be by chance."""
    return isinstance(answer, bool | np.bool_) and bool(answer)
