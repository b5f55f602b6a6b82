"""The training loop, for classifiers of point sets and for the set problems of `pointset.tasks`.

All random numbers of epoch e depend on (seed, e) only. Order, subsets and augmentation have a separate generator.
Dropout uses torch's generator, which is seeded for the epoch and restored afterwards. On a CPU, with the same number of
threads, a run that was killed and resumed gives bitwise the same results as an uninterrupted run. An `Objective`
defines the training sets and the loss. For several processes, see `pointset.training.processes`.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pointset.data.batches import mixed_seed
from pointset.errors import PointsetError
from pointset.runs.progress import on_terminal, progress_bar
from pointset.training.checkpoints import (
    Callback,
    Checkpoint,
    EpochRow,
    Fitted,
    RunFolder,
    Weights,
    best_epoch,
    make_fitted,
)
from pointset.training.objectives import Objective
from pointset.training.optimization import (
    OptimizerBuilder,
    built_optimizer,
    describe_optimizer,
    learning_rate,
    make_optimizer,
)
from pointset.training.processes import Processes, find_device, join_processes
from pointset.training.recipe import Recipe


class Training:
    """The training of a model with an objective, and the state of the training between epochs."""

    def __init__(
        self,
        model: nn.Module,
        objective: Objective,
        recipe: Recipe,
        seed: int,
        *,
        optimizer: OptimizerBuilder | None = None,
        callbacks: Sequence[Callback] = (),
        processes: Processes | None = None,
    ) -> None:
        self.processes = processes or join_processes(find_device(recipe.device))
        self.device, self.model = self.processes.device, model.to(self.processes.device)
        self.objective, self.recipe, self.seed, self.callbacks = objective, recipe, seed, callbacks
        self.optimizer = make_optimizer(model, recipe) if optimizer is None else built_optimizer(optimizer, model)
        self.described = {} if optimizer is None else {"optimizer": describe_optimizer(self.optimizer)}
        self.peak_rates = [group["lr"] for group in self.optimizer.param_groups]
        self.steps = recipe.total_steps(objective.steps_per_epoch)
        self.history: list[EpochRow] = []
        self.best: Weights | None = None
        self.folder: RunFolder | None = None

    def fit(self, run: str | Path | None, description: Callable[[], dict[str, Any]], progress: bool) -> Fitted:
        """Train to the end, from the saved state in the folder `run`. `description` returns the content of run.json."""
        with ExitStack() as held:

            def enter_folder() -> Checkpoint:
                begun = self._state()
                if run is None:
                    return begun
                self.folder = RunFolder(Path(run))
                held.enter_context(self.folder.locked())
                about = description() | self.described | {"processes": self.processes.world}
                return self.folder.enter(about, begun)

            state = self.processes.from_main(enter_folder)
            source = "the checkpoint" if self.folder is None else f"the saved state in {self.folder.path}"
            state.restore(self.model, self.optimizer, source)
            self.history, self.best = state.history, state.best
            if not state.finished:
                self._train(progress)
        return make_fitted(self.model, self.history, self.recipe)

    def _state(self) -> Checkpoint:
        """Return the state. Later steps can change the tensors in it."""
        weights = {name: tensor.cpu() for name, tensor in self.model.state_dict().items()}
        return Checkpoint(weights, self.optimizer.state_dict(), self.history, self.best)

    def _train(self, progress: bool) -> None:
        per_epoch = self.objective.steps_per_epoch
        done = min(self.steps, len(self.history) * per_epoch)
        show = progress and self.processes.rank == 0
        what = "training" if self.folder is None else f"training {self.folder.path.name}"
        with progress_bar(what, "step", self.steps, show=show, done=done, leave=False) as bar:
            while len(self.history) * per_epoch < self.steps and not self._stopped():
                self._epoch(len(self.history), bar)
        if self.best is not None:
            self.model.load_state_dict(self.best)
        self.processes.from_main(self._finish)

    def _epoch(self, epoch: int, bar: Any) -> None:
        """Train for one epoch, validate and save."""
        start, busy = time.perf_counter(), time.process_time()
        row: EpochRow = {"epoch": epoch + 1, **self._train_epoch(epoch, bar)}
        row["seconds"] = round(time.perf_counter() - start, 3)
        if self.device.type == "cpu":
            row["processor_seconds"] = round(time.process_time() - busy, 3)
        self.history.append(self.processes.from_main(partial(self._validated, row)))
        if self.recipe.patience is not None and best_epoch(self.history) == epoch + 1:
            self.best = {name: tensor.clone() for name, tensor in self.model.state_dict().items()}
        self.processes.from_main(self._save)

    def _train_epoch(self, epoch: int, bar: Any) -> dict[str, float]:
        recipe, per_epoch = self.recipe, self.objective.steps_per_epoch
        parameters = list(self.model.train().parameters())  # listed once, because this is slow
        totals = torch.zeros(2 + len(self.objective.metrics), device=self.device)  # of this process: see `_backward`
        steps, rate = range(epoch * per_epoch, self.steps), 0.0
        with seeded_dropout(self.seed, epoch, self.device, self.processes.rank):
            for step, batch in zip(steps, self.objective.batches(epoch), strict=False):
                for group, peak in zip(self.optimizer.param_groups, self.peak_rates, strict=True):
                    group["lr"] = rate = learning_rate(recipe, step, self.steps, peak)
                self.optimizer.zero_grad()
                totals += self._backward(batch)
                if recipe.clip_norm is not None:
                    nn.utils.clip_grad_norm_(parameters, recipe.clip_norm)
                self.optimizer.step()
                bar.update()
                if on_terminal() and not bar.disable:
                    so_far = ", ".join(f"{name} {value:.3f}" for name, value in self._means(totals).items())
                    bar.set_postfix_str(f"epoch {epoch + 1}: {so_far}")
        self.processes.settle_buffers(self.model)
        means = self._means(self.processes.sum(totals))
        if not math.isfinite(means["loss"]):
            cause = self.objective.fault() or "lower learning_rate, or set clip_norm if it is off"
            raise PointsetError(f"the loss became {means['loss']} in epoch {epoch + 1}: {cause}")
        return {**means, "learning_rate": rate}

    def _backward(self, batch: Any) -> Tensor:
        """Add the gradients of a batch. Return sums of loss and metrics over this process's sets, and their number."""
        share, totals = self.processes.share(batch), torch.zeros((), device=self.device)
        if size := self.objective.size(share):
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.recipe.precision == "bfloat16"):
                output = self.objective.output(self.model, share, self.device)
            loss, sums = self.objective.loss(output, share)
            if weight := self.objective.weight(share):
                part = weight / self.objective.weight(batch)
                (loss * part).backward()
                loss = loss.detach() * (part * self.objective.size(batch))
            else:  # all classes have weight 0, and the mean is 0 / 0
                loss = torch.zeros_like(loss)
            totals = torch.stack([loss, *sums, torch.full_like(loss, size)])
        self.processes.sum_gradients(self.model)
        return totals

    def _means(self, totals: Tensor) -> dict[str, float]:
        """Return the mean loss and metrics, computed from sums over the sets and the number of sets."""
        *sums, count = totals.tolist()
        return {name: total / count for name, total in zip(("loss", *self.objective.metrics), sums, strict=True)}

    def _validated(self, row: EpochRow) -> EpochRow:
        """Return the row with validation results, and with `stopped` if a callback ends the run."""
        row = {**row, **self.objective.validate(self.model)}
        answers = [callback(dict(row)) for callback in self.callbacks]
        # Only True counts, because callbacks may return other true values by chance.
        return row | {"stopped": True} if any(isinstance(one, bool | np.bool_) and one for one in answers) else row

    def _save(self) -> None:
        if self.folder is not None:
            self.folder.save(self._state())

    def _finish(self) -> None:
        if self.folder is not None:
            self.folder.finish(self.model.state_dict())

    def _stopped(self) -> bool:
        """Return True if a callback or early stopping ends the run."""
        if self.history and self.history[-1].get("stopped"):
            return True
        patience = self.recipe.patience
        return patience is not None and len(self.history) - best_epoch(self.history) >= patience


@contextmanager
def seeded_dropout(seed: int, epoch: int, device: torch.device, rank: int = 0) -> Iterator[None]:
    """Seed torch's global generators, from which dropout draws, by (seed, epoch, rank) inside this block."""
    devices = [] if device.type == "cpu" else [device]
    with torch.random.fork_rng(devices=devices, device_type="cuda" if device.type == "cpu" else device.type):
        key = (seed, epoch, 0xD0) if rank == 0 else (seed, epoch, 0xD0, rank)  # rank 0 draws as a single process does
        torch.manual_seed(mixed_seed(*key))
        yield
