"""Model selection within a budget for a user's folder: `pointset train` without the name of a model.

Three candidates are compared by out-of-fold predictions for training shapes. `svm` is a support vector machine on
surface features and embeddings of pretrained networks, `network` is a fine-tuned network with local features, and
`ensemble` is the mean of the log-probabilities of the two. The ensemble is selected unless the log loss of another
candidate is smaller by more than one standard error. The selected candidate is fitted to all shapes.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import torch
from torch import Tensor, nn

from pointset.baselines.models import mean_log_probabilities
from pointset.configuration import check_seed
from pointset.data.groups import WHAT_GROUPS_TAKES, Grouping
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs import records
from pointset.runs.atomic import check_folder_path
from pointset.runs.records import write_or_compare
from pointset.training.baselines import baseline_of, extract_and_fit
from pointset.training.checkpoints import Fitted, RunFolder, describe_run
from pointset.training.fine_tuning import BUDGET, Plan, new_network, transfer_recipe
from pointset.training.fitting import fit
from pointset.training.objectives import require_classes
from pointset.training.out_of_fold import (
    FOLDS,
    Candidate,
    assess,
    draw_folds,
    out_of_fold_temperature,
    predicted,
    select_candidate,
)
from pointset.zoo.models import ENSEMBLE, create_for, ensemble_of, load_model, set_preparation
from pointset.zoo.predicting import predict

SVM, NETWORK = "svm", "network"
SVM_MODEL, SVM_MODEL_ANY_POSE = "surface+embedding-svm", "surface+any-svm"
SETTINGS, PLAN, RESULT = "selection.json", "plan.json", "candidates.json"
"""Files in the folder of a run: settings that must be equal to resume the run, the plan for the network, the
candidates."""


class _Result(TypedDict):
    """The content of candidates.json, from which a finished selection is loaded."""

    name: str
    candidates: tuple[Candidate, ...]
    reason: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class ModelSelection:
    """The selected model, fitted to all training shapes, and the candidates."""

    fitted: Fitted
    """The selected model and its history."""
    name: str
    """The name of the selected candidate."""
    candidates: tuple[Candidate, ...]
    """The candidates. If there is a network, all are evaluated on the shapes of its out-of-fold predictions."""
    grouping: Grouping
    """Groups of training shapes: the shapes of a group are in the same fold."""
    reason: str
    """The reason for the selection, and the number of steps that the budget did not allow."""
    sentences: tuple[str, ...] = ()
    """Remarks on groups and calibration."""


def select_model(
    train: PointSets,
    *,
    budget: float = BUDGET,
    seed: int = 0,
    run: str | Path | None = None,
    progress: bool = True,
    on_candidate: Callable[[Candidate], object] | None = None,
) -> ModelSelection:
    """Select and fit the best model for a user's shapes, as `pointset train` without a name does.

    The number of steps of the network depends on the data only. If the budget is too small, the number of folds is
    reduced from five to one. If that is not enough, the number of steps is halved, and at last no network is trained.
    `reason` reports the latter two. The support vector machine is always fitted. The same call resumes an interrupted
    selection with the same plan, and loads a finished one.

    Args:
        train: the training shapes.
        budget: CPU seconds for selection and training.
        seed: seed of folds, initial weights and order of shapes.
        run: folder for the result. The run of the network is in the subfolder `network`. None saves nothing.
        progress: show progress.
        on_candidate: a function that is called with each of the candidates `svm` and `network` after its out-of-fold
            predictions.

    Returns:
        The selected model (fitted to all shapes), the candidates with their out-of-fold accuracies, and the reason.

    Raises:
        PointsetError: the shapes are of one class, or the folder holds another run.

    Example:
        >>> best = pointset.select_model(train, budget=1, progress=False)
        >>> best.fitted.model.classes
        ['flat', 'round']
    """
    check_seed(seed)
    require_classes(train)
    if train.options.normalize == "unit-sphere":
        train = train.normalized("center-standardize")
    if run is None:
        return _Selection(train, seed, None, progress, on_candidate).run(budget)
    refuse_other_run(run)
    folder = RunFolder(Path(run))
    with folder.locked():
        settings = {"data": train.describe(), "seed": seed, "budget": budget}
        write_or_compare(folder.path / SETTINGS, settings, tuple(settings), "model selection")
        selection = _Selection(train, seed, folder, progress, on_candidate)
        return selection.read(folder) if folder.finished and (folder.path / RESULT).exists() else selection.run(budget)


def refuse_other_run(run: str | Path) -> None:
    """Raise a PointsetError if a folder cannot be used, or holds a run without model selection."""
    folder = RunFolder(Path(run))
    check_folder_path(folder.path)
    if (folder.path / "run.json").exists() and not (folder.path / SETTINGS).exists():
        name = folder.description().get("model", {}).get("name", "another model")
        raise PointsetError(f"{folder.path} holds a run of {name}: choose another folder with --run (in Python run=)")


@dataclass
class _Selection:
    """One model selection, with the folder for its runs."""

    train: PointSets
    seed: int
    folder: RunFolder | None
    progress: bool
    on_candidate: Callable[[Candidate], object] | None

    def __post_init__(self) -> None:
        self.labels = self.train.labels
        self.grouping, self.folds = draw_folds(self.train.grouping, self.labels, self.seed)

    def read(self, folder: RunFolder) -> ModelSelection:
        """Load the finished selection in the folder."""
        decode = partial(msgspec.json.decode, type=_Result)
        result = records.parse(folder.path / RESULT, decode, "a model selection", "train in another folder")
        history = folder.history()
        fitted = Fitted(load_model(folder.path), history, len(history))
        return ModelSelection(fitted, grouping=self.grouping, **result)

    def run(self, budget: float) -> ModelSelection:
        """Compute out-of-fold predictions of each candidate, select one, and fit it to all shapes."""
        began, groups = time.process_time(), self.grouping.groups
        name = SVM_MODEL_ANY_POSE if self.train.options.normalize == "principal-axes" else SVM_MODEL
        svm: Any = create_for(self.train, name, seed=self.seed)
        out_of_fold, _ = extract_and_fit(svm.model, self.train, self.folds.numpy(), groups, FOLDS, self.progress)
        logits, seconds = {SVM: out_of_fold}, {SVM: time.process_time() - began}
        self._show(SVM, logits, seconds)
        plan = self._plan(budget, seconds[SVM])
        if plan.has_network:
            logits[NETWORK], seconds[NETWORK] = self._network_out_of_fold(plan)
            self._show(NETWORK, logits, seconds)
            if (tested := predicted(logits[NETWORK])).any():  # evaluate all candidates on the same shapes
                logits[SVM] = torch.where(tested[:, None], logits[SVM], torch.nan)
            logits[ENSEMBLE] = mean_log_probabilities([logits[SVM], logits[NETWORK]])
            seconds[ENSEMBLE] = seconds[SVM] + seconds[NETWORK]
        usual = ENSEMBLE if plan.has_network else SVM
        name, reason = select_candidate(logits, self.labels, groups, usual)
        model, history = self._fit(name, svm, plan)
        if name != SVM:  # the head of the support vector machine has a temperature
            model.temperature = out_of_fold_temperature(logits[name], self.labels, groups) or 1.0
        selection = ModelSelection(
            Fitted(model.eval(), history, len(history)),
            name,
            tuple(dataclasses.replace(self._assess(one, logits, seconds), chosen=one == name) for one in logits),
            self.grouping,
            reason + plan.cut(budget, self.train),
            tuple(self._sentences(model)),
        )
        return selection if self.folder is None else self._saved(selection, plan.steps, self.folder)

    def _plan(self, budget: float, spent: float) -> Plan:
        """Return the plan for the network. If the training is resumed, this is the saved plan."""
        file = None if self.folder is None else self.folder.path / PLAN
        if file is not None and file.exists():
            return Plan.read(file)
        plan = Plan.within(budget, spent, self.train, self.seed)
        if file is not None:
            records.write_json(file, dataclasses.asdict(plan))
        return plan

    def _network_out_of_fold(self, plan: Plan) -> tuple[Tensor, float]:
        """Return the network's out-of-fold logits (NaN in folds that the plan omits), and the CPU seconds."""
        began = time.process_time()
        logits = torch.full((len(self.train), len(self.train.classes)), torch.nan)
        for fold in range(plan.folds):
            inside = self.folds == fold
            if inside.any():
                others = self.train.subset((~inside).nonzero().flatten())
                network = self._fit_network(others, plan.steps, f"fold-{fold}")
                logits[inside] = predict(network.model, self.train.subset(inside.nonzero().flatten())).logits.cpu()
        return logits, plan.seconds + time.process_time() - began

    def _fit_network(self, sets: PointSets, steps: int, name: str) -> Fitted:
        network, recipe = new_network(self.train, self.seed), transfer_recipe(self.train, steps=steps)
        run = None if self.folder is None else self.folder.path / name
        return fit(network, sets, recipe, seed=self.seed, run=run, progress=self.progress)

    def _fit(self, name: str, svm: nn.Module, plan: Plan) -> tuple[Any, list[dict[str, Any]]]:
        """Return the selected candidate, fitted to all shapes, and the history of its network."""
        model, history = svm, []
        if plan.has_network and (name != SVM or self.folder is not None):  # `attend` and `export` need the network
            network = self._fit_network(self.train, plan.steps, NETWORK)
            if name != SVM:
                model, history = network.model, network.history
        if name == ENSEMBLE:
            model = ensemble_of([svm, model])
        set_preparation(model, self.train.classes, self.train.preparation)
        return model, history

    def _assess(self, name: str, logits: dict[str, Tensor], seconds: dict[str, float]) -> Candidate:
        return assess(name, logits[name], self.labels, self.grouping.groups, seconds[name])

    def _show(self, name: str, logits: dict[str, Tensor], seconds: dict[str, float]) -> None:
        if self.on_candidate is not None:
            self.on_candidate(self._assess(name, logits, seconds))

    def _sentences(self, model: Any) -> Iterator[str]:
        """Yield remarks on groups that are ignored, and on probabilities that are not calibrated."""
        if self.train.grouping and not self.grouping:
            yield (
                "folds ignore groups, because with groups a class would have no training shape in a fold: the accuracy "
                f"may be too high; give --groups {WHAT_GROUPS_TAKES}"
            )
        baseline = baseline_of(model)
        if (model.temperature if baseline is None else float(baseline.head.temperature)) == 1.0:
            yield "probabilities are not calibrated: the temperature is 1"

    def _saved(self, selection: ModelSelection, steps: int, folder: RunFolder) -> ModelSelection:
        """Save the selection, and return it with the saved weights."""
        model, recipe = selection.fitted.model, transfer_recipe(self.train, steps=max(steps, 1))
        if not folder.finished:
            folder.describe(describe_run(model, self.train, recipe, self.seed))
            result = {name: msgspec.to_builtins(getattr(selection, name)) for name in _Result.__annotations__}
            records.write_json(folder.path / RESULT, result)
            folder.write_history(selection.fitted.history)
            folder.finish(model.state_dict())
        return dataclasses.replace(selection, fitted=folder.fitted(model, recipe))
