"""A task as something to train on: fresh sets at every step, and its figures on sets that are always the same."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pointset.data.batches import epoch_generator
from pointset.runs.provenance import origin
from pointset.tasks.task import SetBatch, Task, describe, watched_sets
from pointset.training.distributed import OneProcess
from pointset.training.objectives import Loss
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

BLOCK = 1000
"""Steps after which a checkpoint is written, and a row of history: this takes the place of an epoch."""


class DrawnSets:
    """The objective of a task. The sets of a step come from (seed, step) alone: all models see the same ones."""

    figures = ()
    steps_per_epoch = BLOCK

    def __init__(self, task: Task, batch_size: int, seed: int) -> None:
        self.task = task
        self.batch_size = batch_size
        self.seed = seed
        self.watched = watched_sets(task)

    def batches(self, epoch: int) -> Iterator[SetBatch]:
        """One for each step of a block."""
        for step in range(epoch * BLOCK, (epoch + 1) * BLOCK):
            yield self.task.draw(self.batch_size, epoch_generator(self.seed, step))

    def size(self, batch: SetBatch) -> int:
        """Sets in a batch."""
        return len(batch.X)

    def share(self, batch: SetBatch, processes: OneProcess) -> SetBatch:
        """The batch: nobody starts several processes for one of these models."""
        return batch

    def output(self, model: nn.Module, batch: SetBatch, device: torch.device) -> Tensor:
        """What the model says, in float32."""
        there = batch.to(device)
        return model(there.X, there.mask).float()

    def loss(self, output: Tensor, batch: SetBatch) -> Loss:
        """The task's loss."""
        return Loss(self.task.loss(output, batch.to(output.device)), ())

    def watch(self, model: nn.Module) -> Mapping[str, float]:
        """The figures on the sets that the task wants to be watched."""
        return take_figures(self.task, model, self.watched) if self.watched else {}


def take_figures(task: Task, model: nn.Module, batches: Sequence[SetBatch]) -> dict[str, float]:
    """The figures of a model on some sets; the model is in evaluation mode while they are taken."""
    was_training = model.training
    device = next(model.parameters()).device
    model.eval()
    try:
        with torch.no_grad():
            there = [batch.to(device) for batch in batches]
            outputs = [model(batch.X, batch.mask).float().cpu() for batch in there]
    finally:
        model.train(was_training)
    found = task.figures(outputs, batches)
    return {metric.name: float(found[metric.name]) for metric in task.metrics}


def describe_run(
    task: Task, options: Mapping[str, Any], row: str, model: ModelOptions, recipe: Recipe, seed: int, processes: int
) -> dict[str, Any]:
    """What a run is: enough to repeat it, in the parts that `pointset.training.checkpoints` compares."""
    return {
        "model": {"task": task.name, "row": row, "options": model.as_dict()},
        "recipe": recipe.as_dict(),
        "seed": seed,
        "data": {"task": task.name, "options": dict(options), **describe(task)},
        "processes": processes,
        **origin(),
    }
