"""The best model for a folder of one's own within a budget: `pointset train` without the name of a model.

Candidates are judged on training shapes that they were not fitted to. They are support vector machines on classical
features of shape and surface and on the embeddings of trained networks (all folds), a network (as many folds as the
budget allows), and their product, which is chosen unless another is clearly better, and fitted to all shapes. The
points of the network know their neighbourhoods, unless it is better on coordinates alone, by its log loss on the first
fold.
"""

import dataclasses
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from pointset.configuration import check_seed
from pointset.data.groups import Grouping, assign_folds
from pointset.data.local_features import common_kind
from pointset.data.options import POSES
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs import records
from pointset.runs.atomic import check_folder_path
from pointset.runs.records import write_or_compare
from pointset.training.baselines import FEW_SHAPES, FOLDS, baseline_of, extract_rows, fit_head, judged, set_pose
from pointset.training.candidates import NETWORK, OWN, ROWS, TURNED_ROWS, Candidate, HeldOut
from pointset.training.checkpoints import Fitted, RunFolder, core_seconds, describe_run
from pointset.training.fine_tuning import BUDGET, Plan, new_network, transfer_recipe
from pointset.training.loading import load_run
from pointset.training.loop import fit
from pointset.training.objectives import require_classes
from pointset.zoo.models import MIXTURE, create_for, mix, set_preparation
from pointset.zoo.predicting import predict


class Choice(TypedDict):
    """The content of choice.json, from which a finished choice is shown again."""

    name: str
    reason: str
    groups: list[int]
    origin: Literal["none", "names", "given"]
    example: str
    never_held_out: list[str]


@dataclass(frozen=True)
class Automatic:
    """The chosen model, fitted to all training shapes, and what it was chosen from."""

    fitted: Fitted
    name: str
    candidates: tuple[Candidate, ...]
    grouping: Grouping
    """Groups of training shapes that were held out together."""
    never_held_out: tuple[str, ...]
    """Classes of one group, of which nothing was held out."""
    reason: str
    """Why it was chosen, and what the budget cut."""


def fit_automatic(
    train: PointSets,
    *,
    budget: float = BUDGET,
    seed: int = 0,
    run: str | Path | None = None,
    progress: bool = True,
    on_candidate: Callable[[Candidate], object] | None = None,
) -> Automatic:
    """Choose and fit the best model for one's own shapes, as `pointset train` without a name does.

    The steps of the network depend on the data alone; the clock only cuts: five folds to one, the comparison with
    coordinates alone, half of the steps, the network, and `reason` says so. The support vector machines are fitted
    whatever the budget is. If interrupted, the same call goes on with the number of steps that was chosen before; a
    finished choice is read again.

    Args:
        train: the training shapes.
        budget: core-seconds for the choice and the training.
        seed: of folds, weights and order.
        run: folder for the result; the network has a run of its own in `run`/network. None keeps nothing.
        progress: show progress.
        on_candidate: called with each candidate when it was judged.

    Returns:
        The chosen model, fitted to all shapes, the candidates with their accuracies on held-out shapes, and the reason.

    Raises:
        PointsetError: the shapes are of one class, or the folder holds another run.

    Example:
        >>> best = pointset.fit_automatic(train, budget=1, progress=False)
        >>> best.fitted.model.classes
        ['flat', 'round']
    """
    check_seed(seed)
    require_classes(train)
    if train.options.normalize == "unit-sphere":
        train = train.normalized("center-standardize")
    if run is None:
        return _Choice(train, budget, seed, None, progress, on_candidate).run()
    refuse_other_run(run)
    folder = RunFolder(Path(run))
    with folder.locked():
        about = {"data": train.describe(), "seed": seed, "budget": budget}
        write_or_compare(folder.path / "automatic.json", about, tuple(about), "automatic training")
        if folder.finished and (folder.path / "choice.json").exists():
            return _read_again(folder)
        return _Choice(train, budget, seed, folder, progress, on_candidate).run()


def refuse_other_run(run: str | Path) -> None:
    """Raise a PointsetError if a folder cannot be used, or holds the run of a model that was named."""
    folder = RunFolder(Path(run))
    check_folder_path(folder.path)
    if (folder.path / "run.json").exists() and not (folder.path / "automatic.json").exists():
        name = folder.description().get("model", {}).get("name", "another model")
        raise PointsetError(f"{folder.path} holds a run of {name}: choose another folder with --run (in Python run=)")


def _read_again(folder: RunFolder) -> Automatic:
    """The choice that a folder holds, without fitting anything."""
    remedy = f"delete {folder.path} and run the same training again"
    choice = records.read_json(folder.path / "choice.json", remedy, Choice)
    rows = records.read_json(folder.path / "candidates.json", remedy, list[dict[str, Any]])
    model, history = load_run(folder.path)[0], folder.history()
    grouping = Grouping(np.array(choice["groups"]), choice["origin"], choice["example"])
    fitted, candidates = Fitted(model, history, len(history)), tuple(Candidate(**row) for row in rows)
    return Automatic(fitted, choice["name"], candidates, grouping, tuple(choice["never_held_out"]), choice["reason"])


class _Choice:
    """The state of one automatic training: fitted models and held-out outputs [N, outputs], by candidate."""

    def __init__(
        self,
        train: PointSets,
        budget: float,
        seed: int,
        folder: RunFolder | None,
        progress: bool,
        on_candidate: Callable[[Candidate], object] | None = None,
    ) -> None:
        self.train, self.budget, self.seed, self.folder, self.progress = train, budget, seed, folder, progress
        self.on_candidate, self.began = on_candidate or (lambda _: None), time.process_time()
        self.seconds: dict[str, float] = defaultdict(float)
        self.rows = TURNED_ROWS if train.options.normalize == POSES["any"] else ROWS
        self.models: dict[str, nn.Module] = {name: create_for(train, name, seed=seed) for name in self.rows}
        self.blocks = {name: self._blocks(name) for name in OWN}
        self.grouping = train.grouping
        few = self.grouping and len(train) <= FEW_SHAPES
        self.count = 2 * FOLDS if few else FOLDS  # few objects: a fit without a fifth of them would be another model
        self.folds = torch.from_numpy(assign_folds(self.grouping.groups, train.labels.tolist(), seed, self.count))
        self.held_out = HeldOut(train.labels, self.grouping.groups, self.rows, seed)
        self.outputs = self.held_out.outputs
        self.earlier = 0.0  # core-seconds of interrupted processes, whose work is used again
        self.seen: dict[str, float] = {}
        self.local_features, self.told = True, ""

    def run(self) -> Automatic:
        """Judge the candidates and fit the best."""
        for name in self.rows:
            blocks = self.blocks.pop(name, None) or self._blocks(name)
            with self._timed(name):
                self.outputs[name] = self._held_out_rows(name, blocks)
            self.on_candidate(self._candidate(name))
        with self._timed(NETWORK):
            plan = self._plan()
            if plan.has_network:
                self.outputs[NETWORK] = self._held_out_network(plan)
        if plan.has_network:
            self.on_candidate(self._candidate(NETWORK))
        with self._timed(MIXTURE):
            self.held_out.add_product()
        name, reason = self.held_out.best()
        history: list[dict[str, Any]] = []
        needed = name == NETWORK or (name == MIXTURE and NETWORK in self.held_out.members)
        if plan.has_network and (needed or self.folder is not None):  # a run has a network to draw and to export
            network = self._fit_network(self.train, plan.steps, NETWORK, self.local_features)
            self.models[NETWORK], history = network.model, network.history if needed else []
        model = self._mixture() if name == MIXTURE else self.models[name]
        set_preparation(model, self.train.classes, self.train.preparation)
        if name != MIXTURE:  # whose weights make its logits those of probabilities
            model.temperature = self.held_out.temperature(name)  # type: ignore[assignment]
        candidates = tuple(self._candidate(each, chosen=each == name) for each in self.outputs)
        never_held_out = np.setdiff1d(self.train.labels.numpy(), self.train.labels[self.folds >= 0].numpy())
        never = tuple(self.train.classes[label] for label in never_held_out)
        reason += self.told + plan.cut(self.budget, self.train)
        choice = Automatic(Fitted(model.eval(), history, len(history)), name, candidates, self.grouping, never, reason)
        return choice if self.folder is None else self._saved(choice, plan.steps, self.folder)

    def _blocks(self, name: str) -> list[Tensor]:
        """The rows of a baseline."""
        baseline = baseline_of(self.models[name])
        assert baseline is not None
        with self._timed(name):
            set_pose(baseline, self.train)
            if baseline.local_features != "none":  # computed at once for all models
                told: list[Any] = [*self.models.values()]
                self.train.with_local_features(common_kind(model.local_features for model in told))
            return extract_rows(baseline, self.train, self.progress, name.rpartition("-")[0])

    def _held_out_rows(self, name: str, blocks: list[Tensor]) -> Tensor:
        """Fit a baseline to all rows, and to those outside of each fold for the outputs that are returned."""
        baseline, labels = baseline_of(self.models[name]), self.train.labels
        assert baseline is not None
        if self.grouping:
            folds = assign_folds(np.arange(len(labels)), labels.tolist(), self.seed, FOLDS)
            outputs = fit_head(baseline, blocks, labels, folds, self.grouping.groups, progress=self.progress)
            self.seen[name] = float(self.held_out.right(outputs, judged(outputs)).mean())
        return fit_head(baseline, blocks, labels, self.folds.numpy(), self.grouping.groups, self.count, self.progress)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Add the core-seconds of the block."""
        began, self.earlier = time.process_time(), 0.0
        yield
        self.seconds[name] += time.process_time() - began + self.earlier

    def _plan(self) -> Plan:
        """The plan for the network; kept in the folder for a resumption."""
        file = self._inside("plan.json")
        if file is not None and file.exists():
            plan = Plan.read(file)
            self.earlier += plan.seconds
            return plan
        plan = Plan.within(self.budget, time.process_time() - self.began, self.train, self.seed)
        if file is not None:
            records.write_json(file, dataclasses.asdict(plan))
        return plan

    def _inside(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder.path / name

    def _fit_network(self, sets: PointSets, steps: int, name: str, local_features: bool) -> Fitted:
        network, recipe = new_network(self.train, local_features, self.seed), transfer_recipe(self.train, steps=steps)
        run = self._inside(name)
        if run is not None:
            self.earlier += core_seconds(RunFolder(run).history_if_any())
        return fit(network, sets, recipe, seed=self.seed, run=run, progress=self.progress)

    def _held_out_network(self, plan: Plan) -> Tensor:
        """Outputs of the better kind of network for the shapes of its held-out folds, NaN for the others."""
        outputs = self._held_out_fold(plan.steps, 0, True)
        tested = judged(outputs)
        if tested.any() and plan.kinds == 2:
            alone = self._held_out_fold(plan.steps, 0, False)
            losses = [float(self.held_out.losses(each, tested).mean()) for each in (outputs, alone)]
            self.local_features = losses[0] <= losses[1]
            if not self.local_features:
                outputs = alone
                self.told = (
                    f"; its network reads coordinates alone, because on the {int(tested.sum()):,} shapes of the first "
                    f"fold its log loss is {losses[1]:.3g}, and {losses[0]:.3g} with neighbourhoods"
                )
        for fold in range(1, plan.folds):
            further = self._held_out_fold(plan.steps, fold, self.local_features)
            outputs = torch.where(further.isfinite(), further, outputs)
        return outputs

    def _held_out_fold(self, steps: int, fold: int, local_features: bool) -> Tensor:
        """Outputs for the shapes of a fold of a network that was trained on the others, NaN for the others."""
        outputs = torch.full((len(self.train), len(self.train.classes)), torch.nan)
        inside = self.folds == fold
        if inside.any():
            others = self.train.subset((~inside).nonzero().flatten())
            name = f"held-out-{fold}" if local_features else f"held-out-{fold}-coordinates"
            network = self._fit_network(others, steps, name, local_features).model
            outputs[inside] = predict(network, self.train.subset(inside.nonzero().flatten())).logits.cpu()
        return outputs

    def _mixture(self) -> nn.Module:
        """The model that multiplies the members, with the weights that suit their held-out outputs."""
        model: Any = mix([self.models[name] for name in self.held_out.members])
        if not judged(self.outputs[MIXTURE]).any():
            model.model.weights.fill_(1 / len(self.held_out.members))
            return model
        for name, fitted in self.held_out.product(torch.ones_like(self.folds, dtype=torch.bool)).named_buffers():
            setattr(model.model, name, fitted)
        return model

    def _candidate(self, name: str, chosen: bool = False) -> Candidate:
        trained = len(self.train) * (1 - 1 / self.count)
        return self.held_out.candidate(name, trained, self.seconds[name], self.seen.get(name), chosen)

    def _saved(self, choice: Automatic, steps: int, folder: RunFolder) -> Automatic:
        """The choice with the weights that its finished run has."""
        model, grouping = choice.fitted.model, choice.grouping
        recipe = transfer_recipe(self.train, steps=max(steps, 1))
        if not folder.finished:
            folder.describe(describe_run(model, self.train, recipe, self.seed))
            rows = [dataclasses.asdict(candidate) for candidate in choice.candidates]
            records.write_json(folder.path / "candidates.json", rows)
            about: Choice = {
                "name": choice.name,
                "reason": choice.reason,
                "never_held_out": list(choice.never_held_out),
                "groups": grouping.groups.tolist(),
                "origin": grouping.origin,
                "example": grouping.example,
            }
            records.write_json(folder.path / "choice.json", about)
            folder.write_history(choice.fitted.history)
            folder.finish(model.state_dict())
        return dataclasses.replace(choice, fitted=folder.fitted(model, recipe))
