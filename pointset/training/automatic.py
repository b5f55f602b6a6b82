"""The best model for a folder of one's own within a budget: `pointset train` without the name of a model.

Candidates are judged on training shapes that they were not fitted to. They are support vector machines on classical
features of shape and surface and on the embeddings of trained networks (all folds), a network whose points know their
neighbourhoods (as many folds as the budget allows), and their product. The chosen one is fitted to all shapes.
"""

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn

from pointset.baselines.likeness import Siblings, find_groups
from pointset.configuration import Neighbourhoods, check_seed
from pointset.data.groups import Groups, assign_folds
from pointset.data.normalize import ABOUT
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.evaluation.calibration import fit_temperature
from pointset.runs import records
from pointset.runs.records import write_or_compare
from pointset.runs.spreadsheets import as_csv
from pointset.training.baselines import FEW_SHAPES, FOLDS, baseline_of, extract_rows, fit_head, set_pose
from pointset.training.candidates import Classes
from pointset.training.checkpoints import Fitted, RunFolder, describe_run
from pointset.training.loading import load_run
from pointset.training.loop import fit, set_training_preparation
from pointset.training.objectives import require_classes
from pointset.training.recipe import Recipe
from pointset.zoo.models import MIXTURE, create_for, create_pretrained
from pointset.zoo.options import ModelOptions
from pointset.zoo.transfer import start_from

BUDGET = 120.0
"""Core-seconds."""
NETWORK = "network"
NETWORK_MODEL = "dumlp16-max+dumlp16"
STARTING_MODEL = f"{NETWORK_MODEL}.modelnet40-1024"
RECIPE = Recipe(
    train_points=(64, 256),
    optimizer="muon",
    learning_rate=5e-3,
    weight_decay=0.05,
    augment=("stretch-wide", "shift-wide", "jitter"),
)
"""Of the network; the number of steps depends on the shapes alone. See scripts/experiments/NOTES.md."""
GROUPS_FILE = "groups.csv"
"""The groups of the training shapes, in the folder of the run."""
FEWEST_STEPS, LEAST_STEPS, EPOCHS = 100, 600, 24
"""Fewer steps are not worth their time; steps for a small folder; epochs for a large one."""


def transfer_recipe(train: PointSets, **changes: Any) -> Recipe:
    """The recipe for shapes of one's own, with changes: 24 epochs, and at least 600 steps."""
    assert RECIPE.train_points is not None
    usual: dict[str, Any] = {"train_points": tuple(min(size, train.size) for size in RECIPE.train_points)}
    if "epochs" not in changes:
        usual["steps"] = max(LEAST_STEPS, EPOCHS * len(train) // RECIPE.batch_size)
    return dataclasses.replace(RECIPE, **{**usual, **changes})


class Plan(TypedDict):
    """The content of plan.json: how long the network is trained, and on how many folds it is held out."""

    steps: Annotated[int, Meta(ge=0)]
    folds: Annotated[int, Meta(ge=1, le=FOLDS)]
    needed: NotRequired[float]
    """Core-seconds of budget for all steps, on one fold."""


class Choice(TypedDict):
    """The content of choice.json, from which a finished choice is shown again."""

    name: str
    reason: str
    groups: list[int]
    rule: str
    agreement: float
    never_held_out: list[str]


@dataclass(frozen=True)
class Candidate:
    """A way to predict the classes of shapes, and how it did on shapes that it was not fitted to."""

    name: str
    accuracy: float
    low: float
    """Of the 95 % interval (Wilson), as is `high`."""
    high: float
    tested: int
    """Number of held-out training shapes."""
    seconds: float
    """Core-seconds for the held-out fits."""
    chosen: bool = False
    seen: float | None = None
    """Accuracy on held-out shapes of which siblings were trained on, where there are groups; of fits to rows."""


@dataclass(frozen=True)
class Automatic:
    """The chosen model, fitted to all training shapes, and what it was chosen from."""

    fitted: Fitted
    name: str
    candidates: tuple[Candidate, ...]
    siblings: Siblings
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

    The steps of the network depend on the data alone; the clock only cuts: five folds to one, then the steps to a half
    or a quarter, then the network, and `reason` says so. The support vector machines are fitted whatever the budget is.
    If interrupted, the same call goes on with the number of steps that was chosen before; a finished choice is read
    again.

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
    folder = RunFolder(Path(run))
    if (folder.path / "run.json").exists() and not (folder.path / "automatic.json").exists():
        name = folder.description().get("model", {}).get("name", "another model")
        raise PointsetError(f"{folder.path} holds a run of {name}: choose another folder with --run (in Python run=)")
    with folder.locked():
        about = {"data": train.describe(), "seed": seed, "budget": budget}
        write_or_compare(folder.path / "automatic.json", about, tuple(about), "automatic training")
        if folder.finished and (folder.path / "choice.json").exists():
            return _read_again(folder)
        return _Choice(train, budget, seed, folder, progress, on_candidate).run()


def _read_again(folder: RunFolder) -> Automatic:
    """The choice that a folder holds, without fitting anything."""
    remedy = f"delete {folder.path} and run the same training again"
    choice = records.read_json(folder.path / "choice.json", remedy, Choice)
    rows = records.read_json(folder.path / "candidates.json", remedy, list[dict[str, Any]])
    model, history = load_run(folder.path)[0], folder.history()
    siblings = Siblings(np.array(choice["groups"]), choice["rule"], choice["agreement"])
    fitted, candidates = Fitted(model, history, len(history)), tuple(Candidate(**row) for row in rows)
    return Automatic(fitted, choice["name"], candidates, siblings, tuple(choice["never_held_out"]), choice["reason"])


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
        self.on_candidate, self.cut = on_candidate, ""
        self.began = time.process_time()
        self.kind = Classes(train)
        self.siblings = find_groups(train, progress)
        few = self.siblings.rule and len(train) <= FEW_SHAPES
        self.count = 2 * FOLDS if few else FOLDS  # few objects: a fit without a fifth of them would be another model
        self.folds = torch.from_numpy(self._assign(self.siblings.groups, self.count))
        self.models: dict[str, nn.Module] = {}
        self.outputs: dict[str, Tensor] = {}
        self.seconds: dict[str, float] = {}
        self.seen: dict[str, float] = {}

    def run(self) -> Automatic:
        """Judge the candidates and fit the best."""
        for name in self.kind.rows:
            with self._timed(name):
                self.models[name] = create_for(self.train, name, seed=self.seed)
                self.outputs[name] = self._held_out_rows(name)
            self._show(name)
        with self._timed(NETWORK):
            steps, folds = self._plan()
            if steps >= FEWEST_STEPS:
                self.outputs[NETWORK] = self._held_out_network(steps, folds)
        if NETWORK in self.outputs:
            self._show(NETWORK)
        common = torch.stack([values.isfinite().all(dim=1) for values in self.outputs.values()]).all(dim=0)
        with self._timed(MIXTURE):
            mixed = self._held_out_mixture(common)
        name, reason = self._best(mixed, common)
        reason += self.cut
        history: list[dict[str, Any]] = []
        needed = name in (NETWORK, MIXTURE)
        if steps >= FEWEST_STEPS and (needed or self.folder is not None):  # a run has a network to draw and to export
            network = self._fit_network(self.train, steps, NETWORK)
            self.models[NETWORK], history = network.model, network.history if needed else []
        model = self.kind.mix(self.models, self.outputs, common) if name == MIXTURE else self.models[name]
        if common.any():
            self.outputs[MIXTURE] = mixed
        set_training_preparation(model, self.train)
        if name != MIXTURE and common.any():  # whose weights make its logits those of probabilities
            tested = self.outputs[name].isfinite().all(dim=1)
            logits, labels = self.outputs[name][tested].numpy(), self.train.labels[tested].numpy()
            model.temperature = fit_temperature(logits, labels)  # type: ignore[assignment]
        candidates = tuple(self._candidate(each, each == name) for each in self.outputs)
        present = np.unique(self.train.labels)
        held_out = np.unique(self.train.labels[self.folds >= 0])
        never = tuple(self.train.classes[label] for label in np.setdiff1d(present, held_out))
        choice = Automatic(Fitted(model.eval(), history, len(history)), name, candidates, self.siblings, never, reason)
        return dataclasses.replace(choice, fitted=self._save(choice, steps))

    def _show(self, name: str) -> None:
        if self.on_candidate is not None:
            self.on_candidate(self._candidate(name, False))

    def _assign(self, groups: Groups, count: int = FOLDS) -> Groups:
        return assign_folds(groups, self.train.labels.tolist(), self.seed, count)

    def _held_out_rows(self, name: str) -> Tensor:
        """Fit a baseline to all shapes, and to those outside of each fold for the outputs that are returned."""
        baseline, labels = baseline_of(self.models[name]), self.train.labels
        assert baseline is not None
        set_pose(baseline, self.train)
        blocks = extract_rows(baseline, self.train, self.progress, name.rpartition("-")[0])
        if self.siblings.rule:
            outputs = fit_head(baseline, blocks, labels, self._assign(np.arange(len(labels))))
            tested = outputs.isfinite().all(dim=1)
            self.seen[name] = float(self.kind.scores(outputs[tested], tested).mean())
        return fit_head(baseline, blocks, labels, self.folds.numpy(), self.count)

    @contextmanager
    def _timed(self, name: str) -> Iterator[None]:
        """Keep the core-seconds of the block."""
        began = time.process_time()
        yield
        self.seconds[name] = time.process_time() - began

    def _network(self) -> nn.Module:
        """A network to train, whose points know their neighbourhoods: turned to axes, with what no turn changes.

        It begins from trained weights where points are coordinates alone, and shapes stand as they were modelled.
        """
        if self.train.inputs == 3 and self.train.options.normalize not in ABOUT:
            return start_from(create_pretrained(STARTING_MODEL), self.train, seed=self.seed, start=STARTING_MODEL)
        kind: Neighbourhoods = "all" if self.train.options.normalize in ABOUT else "oriented"
        options = ModelOptions(
            dim=64, norm="batch", head_dim=256, head_norm="batch", dropout=0.3, pooled_dropout=0.0, neighbourhoods=kind
        )
        return create_for(self.train, NETWORK_MODEL, options, seed=self.seed)

    def _fit_network(self, sets: PointSets, steps: int, name: str) -> Fitted:
        run, recipe = self._inside(name), transfer_recipe(self.train, steps=steps)
        return fit(self._network(), sets, recipe, seed=self.seed, run=run, progress=self.progress)

    def _inside(self, name: str) -> Path | None:
        return None if self.folder is None else self.folder.path / name

    def _plan(self) -> tuple[int, int]:
        """Steps of the network and the number of folds that it is held out on; kept in the folder for a resumption."""
        file = self._inside("plan.json")
        if file is not None and file.exists():
            remedy = f"delete {file.parent} and run the same training again"
            plan = records.read_json(file, remedy, Plan)
            return self._cut_to(plan["steps"], plan["folds"], plan.get("needed", 0.0))
        seconds = []
        for steps in (1, 1, 9):  # the first makes what is made once, such as the numbers of neighbourhoods
            began = time.process_time()
            fit(self._network(), self.train, transfer_recipe(self.train, steps=steps), seed=self.seed, progress=False)
            seconds.append(time.process_time() - began)
        step = max((seconds[2] - seconds[1]) / 8, 1e-4)
        spent = time.process_time() - self.began
        whole = transfer_recipe(self.train).steps or 0
        tried = [*((whole, folds) for folds in (FOLDS, 3, 2, 1)), (whole // 2, 1)]
        fitting = ((n, k) for n, k in tried if spent + n * (k + 1) * step <= self.budget)
        # The usual budget pays for some steps whatever the clock says: other work slows them down, and not the network.
        steps, folds = next(fitting, (whole // 2, 1) if self.budget >= BUDGET else (0, 1))
        needed = round(spent + 2 * whole * step, 1)
        if file is not None:
            records.write_json(file, {"steps": steps, "folds": folds, "needed": needed})
        return self._cut_to(steps, folds, needed)

    def _cut_to(self, steps: int, folds: int, needed: float) -> tuple[int, int]:
        """The steps and folds; what the budget cut is kept in words."""
        whole = transfer_recipe(self.train).steps or 0
        remedy = f"; --budget {math.ceil(needed):,}s would be enough for all steps" if needed else ""
        if steps < FEWEST_STEPS:
            self.cut = f"; no network was trained, for the budget of {self.budget:g} s{remedy}"
        elif steps < whole:
            self.cut = f"; the network had {steps:,} of {whole:,} steps, for the budget of {self.budget:g} s{remedy}"
        return steps, folds

    def _held_out_network(self, steps: int, folds: int) -> Tensor:
        """Outputs of the network for the shapes of its held-out folds, NaN for the others."""
        outputs = torch.full((len(self.train), self.kind.outputs), torch.nan)
        for fold in range(folds):
            inside = self.folds == fold
            if inside.any():
                others = self.train.subset((~inside).nonzero().flatten())
                network = self._fit_network(others, steps, f"held-out-{fold}").model
                outputs[inside] = self.kind.predicted(network, self.train.subset(inside.nonzero().flatten()))
        return outputs

    def _held_out_mixture(self, common: Tensor) -> Tensor:
        """Outputs of the combination, fitted to the other folds, for shapes that all were judged on; NaN for others."""
        outputs = torch.full_like(self.outputs[self.kind.rows[0]], torch.nan)
        for fold in range(self.count):
            inside = common & (self.folds == fold)
            others = common & ~inside
            if inside.any():
                outputs[inside] = self.kind.combined(self.outputs, others if others.any() else inside, inside)
        return outputs

    def _best(self, mixed: Tensor, common: Tensor) -> tuple[str, str]:
        """The best candidate, and why.

        On the shapes that all were judged on, the network replaces the combination if it is at least as good, because
        it can be drawn and exported; another candidate if it is better by `kind.margin`. Neither may have a larger
        loss. Of several such, the best is that of the highest accuracy, and then of the smallest loss, on all shapes
        that each was judged on; the network has to be as good as it on those that both were.
        """
        shared = f"the {int(common.sum()):,} shapes that all were judged on"
        rows = sorted(self.kind.rows, key=self._rank)
        if not common.any():
            return rows[0], "the highest accuracy, and of equals the smallest loss, on all shapes that it was judged on"
        scores, loss = self.kind.scores(mixed[common], common), self.kind.loss(mixed[common], common)

        def replaces(name: str) -> bool:
            gain = self.kind.scores(self.outputs[name][common], common) - scores
            margin = 0.0 if name == NETWORK else self.kind.margin(gain)
            return bool(gain.mean() >= margin) and self.kind.loss(self.outputs[name][common], common) <= loss

        better = [name for name in rows if replaces(name)]
        if NETWORK in self.outputs and replaces(NETWORK) and self._as_good(NETWORK, better[:1], common):
            return NETWORK, f"as good as all others on {shared}, and it can be drawn and exported"
        if better:
            many = int(self.outputs[better[0]].isfinite().all(dim=1).sum())
            return better[0], f"no worse than the product of all on {shared}, and the best on its {many:,} shapes"
        return MIXTURE, f"the product of all is better than each on {shared}"

    def _rank(self, name: str) -> tuple[float, float]:
        """Sorts candidates by accuracy and then by log loss on all shapes that they were judged on, the best first."""
        outputs = self.outputs[name]
        tested = outputs.isfinite().all(dim=1)
        if not tested.any():
            return 0.0, 0.0
        return -float(self.kind.scores(outputs[tested], tested).mean()), self.kind.loss(outputs[tested], tested)

    def _as_good(self, name: str, others: Sequence[str], shapes: Tensor) -> bool:
        """True if no other is more accurate on these shapes."""
        mean = {each: float(self.kind.scores(self.outputs[each][shapes], shapes).mean()) for each in (name, *others)}
        return mean[name] >= max(mean.values())

    def _candidate(self, name: str, chosen: bool) -> Candidate:
        tested = self.outputs[name].isfinite().all(dim=1)
        scores = self.kind.scores(self.outputs[name][tested], tested)
        interval = self.kind.interval(scores, self.siblings.groups[tested.numpy()])
        score = float(scores.sum()) / max(len(scores), 1)
        return Candidate(name, score, *interval, len(scores), self.seconds[name], chosen, self.seen.get(name))

    def _save(self, choice: Automatic, steps: int) -> Fitted:
        model, history, siblings = choice.fitted.model, choice.fitted.history, choice.siblings
        if self.folder is None:
            return choice.fitted
        recipe = transfer_recipe(self.train, steps=max(steps, 1))
        if not self.folder.finished:
            self.folder.claim(describe_run(model, self.train, recipe, self.seed))
            rows = [dataclasses.asdict(candidate) for candidate in choice.candidates]
            records.write_json(self.folder.path / "candidates.json", rows)
            about: dict[str, Any] = {
                "name": choice.name,
                "reason": choice.reason,
                "never_held_out": list(choice.never_held_out),
            }
            about |= {"groups": siblings.groups.tolist(), "rule": siblings.rule, "agreement": siblings.agreement}
            records.write_json(self.folder.path / "choice.json", about)
            if self.siblings.rule:
                pairs = zip(self.train.names, self.siblings.groups.tolist(), strict=True)
                table = as_csv([{"file": name, "group": group} for name, group in pairs])
                (self.folder.path / GROUPS_FILE).write_text(table, encoding="utf-8")
            self.folder.write_history(history)
            self.folder.finish(model.state_dict())
        return self.folder.fitted(model, recipe)
