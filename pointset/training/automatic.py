"""The best model for a folder of one's own within a budget: `pointset train` without the name of a model.

Candidates are judged on training shapes that they were not fitted to. For classes: support vector machines on classical
features of shape and surface and on the embeddings of trained networks (all folds), a trained network fine-tuned (as
many folds as the budget allows), and their product, which is usually best. For numbers: kernel ridge regression on the
features, for many shapes the network too, and their mean. The chosen one is then fitted to all training shapes.
"""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import torch
from msgspec import Meta
from torch import Tensor, nn

from pointset.baselines.folds import assign_folds
from pointset.baselines.heads import Head
from pointset.configuration import check_seed
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs import digests
from pointset.runs.claims import claim
from pointset.training.baselines import FOLDS, baseline_of, fit_rows
from pointset.training.candidates import Candidate, Classes, Numbers
from pointset.training.checkpoints import Fitted, RunFolder, describe
from pointset.training.loop import fit, know_training_data
from pointset.training.recipe import Recipe
from pointset.zoo.models import MIXTURE, create_for, create_pretrained
from pointset.zoo.options import ModelOptions
from pointset.zoo.transfer import start_from

BUDGET = 120.0
"""Core-seconds."""
START = "dumlp16-max+dumlp16.modelnet40-1024"
RECIPE = Recipe(
    train_points=(64, 256),
    optimizer="muon",
    learning_rate=5e-3,
    weight_decay=0.05,
    augment=("stretch-wide", "shift-wide", "jitter"),
)
"""Of the network; the number of steps depends on the shapes and the budget. See scripts/experiments/NOTES.md."""
FEWEST_STEPS, LEAST_STEPS, EPOCHS = 60, 300, 20
"""Fewer steps are not worth their time; steps for a small folder; epochs for a large one."""


def transfer_recipe(train: PointSets, steps: int | None = None) -> Recipe:
    """The recipe for trained weights on other shapes: 20 epochs, and at least 300 steps; numbers need their shapes."""
    steps = max(LEAST_STEPS, EPOCHS * len(train) // RECIPE.batch_size) if steps is None else steps
    assert RECIPE.train_points is not None
    fewest, most = (min(size, train.size) for size in RECIPE.train_points)
    augment = RECIPE.augment if train.targets is None else ("jitter",)
    return dataclasses.replace(RECIPE, steps=steps, train_points=(fewest, most), augment=augment)


class Plan(TypedDict):
    """The content of plan.json: how long the network is trained, and on how many folds it is held out."""

    steps: Annotated[int, Meta(ge=0)]
    folds: Annotated[int, Meta(ge=1, le=FOLDS)]


@dataclass(frozen=True)
class Automatic:
    """The chosen classifier, fitted to all training shapes, and what it was chosen from."""

    fitted: Fitted
    name: str
    candidates: tuple[Candidate, ...]


def fit_automatic(
    train: PointSets, *, budget: float = BUDGET, seed: int = 0, run: str | Path | None = None, progress: bool = True
) -> Automatic:
    """Choose and fit the best model within `budget` core-seconds; the network has a run of its own in `run`/network.

    If interrupted, the same call goes on with the number of steps that was chosen before.
    """
    check_seed(seed)
    if train.targets is None and len(train.labels.unique()) < 2:
        raise PointsetError(f"{train.name or 'the data'} has shapes of one class only: give shapes of two or more")
    if train.options.normalize == "unit-sphere":
        train = train.normalized("center-standardize")
    if run is None:
        return _Choice(train, budget, seed, None, progress).run()
    folder = RunFolder(Path(run))
    with folder.locked():
        about = {"data": train.describe(), "seed": seed, "budget": budget}
        claim(folder.path / "automatic.json", about, tuple(about), "automatic training")
        return _Choice(train, budget, seed, folder, progress).run()


class _Choice:
    """The state of one automatic training."""

    def __init__(self, train: PointSets, budget: float, seed: int, folder: RunFolder | None, progress: bool) -> None:
        self.train, self.budget, self.seed, self.folder, self.progress = train, budget, seed, folder, progress
        self.began = time.process_time()
        self.kind: Classes | Numbers = Classes(train) if train.targets is None else Numbers(train)
        self.folds = assign_folds(train.names, train.labels.tolist(), FOLDS, seed)

    def run(self) -> Automatic:
        """Judge the candidates and fit the best."""
        outputs: dict[str, Tensor] = {}
        members: dict[str, nn.Module] = {}
        seconds: dict[str, float] = {}
        for name in self.kind.rows:
            began = time.process_time()
            members[name], outputs[name] = self._fit_rows(name)
            seconds[name] = time.process_time() - began
        began = time.process_time()
        steps, folds = self._plan() if len(self.train) >= self.kind.fewest else (0, 0)
        if steps >= FEWEST_STEPS:
            outputs["network"] = self._held_out_network(steps, folds)
            seconds["network"] = time.process_time() - began
        chosen, combined = self._choose(outputs)
        mixed = dict(outputs)
        if combined is not None:
            outputs[MIXTURE], seconds[MIXTURE] = combined
        history: list[dict[str, Any]] = []
        needed = chosen in ("network", MIXTURE)
        if steps >= FEWEST_STEPS and (needed or self.folder is not None):  # a run has a network to draw and to export
            trained = self._fit_network(self.train, steps, "network")
            members["network"], history = trained.model, trained.history if needed else []
        model = members[chosen] if chosen != MIXTURE else self.kind.mix(members, mixed, self._common(mixed))
        know_training_data(model, self.train)
        self.kind.finish(model, outputs[chosen])
        candidates = []
        for name, values in outputs.items():
            tested = values.isfinite().all(dim=1)
            scores = self.kind.scores(values[tested], tested)
            score, interval = float(scores.sum()) / max(len(scores), 1), self.kind.interval(scores)
            candidates.append(Candidate(name, score, *interval, len(scores), seconds[name], name == chosen))
        return Automatic(self._save(model, history, steps, candidates), chosen, tuple(candidates))

    def _fit_rows(self, name: str) -> tuple[nn.Module, Tensor]:
        model = create_for(self.train, name, seed=self.seed)
        held_out = fit_rows(model, self.train, self.folds, FOLDS, self.progress).held_out
        know_training_data(model, self.train)
        head = getattr(baseline_of(model), "head", None)
        return model.eval(), held_out / head.temperature if isinstance(head, Head) else held_out

    def _network(self) -> nn.Module:
        """A network to train, from trained weights where points are coordinates alone."""
        train = self.train
        if train.inputs == 3:
            names, numbers = train.target_names or train.classes, train.targets is not None
            trained = create_pretrained(START)
            return start_from(trained, names, train.up, seed=self.seed, start=START, numbers=numbers)
        options = ModelOptions(dim=64, head_dim=256, head_norm="batch", dropout=0.3, pooled_dropout=0.0)
        return create_for(train, START.partition(".")[0], options, seed=self.seed)

    def _fit_network(self, sets: PointSets, steps: int, name: str) -> Fitted:
        run, recipe = self._inside(name), transfer_recipe(self.train, steps)
        return fit(self._network(), sets, recipe, seed=self.seed, run=run, progress=self.progress)

    def _inside(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder.path / name

    def _plan(self) -> tuple[int, int]:
        """Steps of the network and the number of folds that it is held out on; kept in the folder for a resumption."""
        file = self._inside("plan.json")
        if file is not None and file.exists():
            remedy = f"delete {file.parent} and run the same training again"
            plan = digests.read_json(file, remedy, Plan)
            return plan["steps"], plan["folds"]
        began = time.process_time()
        fit(self._network(), self.train, transfer_recipe(self.train, 1), seed=self.seed, progress=False)
        first = time.process_time()
        fit(self._network(), self.train, transfer_recipe(self.train, 9), seed=self.seed, progress=False)
        step = max((time.process_time() - 2 * first + began) / 8, 1e-4)
        left = self.budget - (time.process_time() - self.began)
        steps = max(0, min(transfer_recipe(self.train).steps or 0, int(left / (2 * step))))
        folds = 1 if steps < FEWEST_STEPS else max(1, min(FOLDS, int(left / (steps * step)) - 1))
        if file is not None:
            digests.write_json(file, {"steps": steps, "folds": folds})
        return steps, folds

    def _held_out_network(self, steps: int, folds: int) -> Tensor:
        """Outputs [N, outputs] of the network for the shapes of its held-out folds, NaN for the others."""
        outputs = torch.full((len(self.train), self.kind.outputs), torch.nan)
        for fold in range(folds):
            inside = torch.from_numpy(self.folds == fold)
            if not inside.any():
                continue
            others = self.train.subset((~inside).nonzero().flatten())
            network = self._fit_network(others, steps, f"held-out-{fold}").model
            outputs[inside] = self.kind.predicted(network, self.train.subset(inside.nonzero().flatten()))
        return outputs

    def _choose(self, outputs: dict[str, Tensor]) -> tuple[str, tuple[Tensor, float] | None]:
        """The best candidate, and the held-out outputs of the combination.

        On the same shapes, the network replaces the combination if it is at least as good, because it can be drawn and
        exported; another candidate if it is better by `kind.margin`. Neither may have a larger loss.
        """
        common = self._common(outputs)
        if not common.any():
            return self.kind.rows[-1], None
        began = time.process_time()
        combined = torch.full_like(outputs[self.kind.rows[0]], torch.nan)
        for fold in range(FOLDS):
            inside = common & torch.from_numpy(self.folds == fold)
            others = common & ~inside
            if inside.any():
                combined[inside] = self.kind.combined(outputs, others if others.any() else inside, inside)
        best = MIXTURE
        scores, loss = self.kind.scores(combined[common], common), self.kind.loss(combined[common], common)
        for name in [*self.kind.rows, "network"]:
            if name in outputs:
                own_scores = self.kind.scores(outputs[name][common], common)
                own_loss = self.kind.loss(outputs[name][common], common)
                gain = own_scores - scores
                error = 0.0 if name == "network" else self.kind.margin(gain)
                if gain.mean() >= error and own_loss <= loss:
                    best = name
        return best, (combined, time.process_time() - began)

    def _common(self, outputs: dict[str, Tensor]) -> Tensor:
        """True for the shapes that every candidate was judged on."""
        return torch.stack([values.isfinite().all(dim=1) for values in outputs.values()]).all(dim=0)

    def _save(
        self, model: nn.Module, history: list[dict[str, Any]], steps: int, candidates: Sequence[Candidate]
    ) -> Fitted:
        if self.folder is None:
            return Fitted(model.eval(), history, len(history))
        recipe = transfer_recipe(self.train, max(steps, 1))
        if not self.folder.finished:
            self.folder.claim(describe(model, self.train, recipe, self.seed))
            rows = [dataclasses.asdict(candidate) for candidate in candidates]
            digests.write_json(self.folder.path / "candidates.json", rows)
            self.folder.write_history(history)
            self.folder.finish(model.state_dict())
        return self.folder.fitted(model, recipe)
