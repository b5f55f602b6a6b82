"""Search for options of networks with Optuna, on a validation split; the test split is never read.

The file of a search is that of an experiment with a table [search] of fields of `Recipe` and `ModelOptions`:

    [search]
    learning_rate = { low = 1e-4, high = 1e-2, log = true }    # a range; of whole numbers where both ends are
    batch_size = { low = 16, high = 64, step = 16 }
    dim = [32, 64, 128]                                        # a choice

If the file has several models, they are a choice, too. A trial trains one model as a run of the experiment would, but
on the training shapes without the validation split. It ends early if its validation accuracy, or R2 for numbers, is
below the median of the trials before. Everything is kept in one folder: a search that was killed goes on from there.
"""

import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from pointset.comparison.experiment import Experiment, unknown_key
from pointset.configuration import Count, check
from pointset.data.dataset import load_split
from pointset.errors import REPEATED, PointsetError, one_line, require_extra
from pointset.runs.atomic import write_for_user
from pointset.runs.claims import claim, owned
from pointset.runs.progress import followed
from pointset.runs.workers import Workers, run_in_workers, torch_threads
from pointset.tasks.experiments import experiment_from, read_content
from pointset.tasks.shapes import ShapeTask
from pointset.training.checkpoints import VALIDATED, RunFolder
from pointset.training.loop import fit
from pointset.training.objectives import require_classes
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from optuna import Study, Trial
    from optuna.distributions import BaseDistribution

VALIDATION = 0.2
"""Share of the training shapes that are held out, if the recipe holds out none."""
FIRST, WARM_UP = 4, 5
"""Trials, and epochs of every trial, before any ends early."""
TRAINED = "trained"
"""The state of a trial that was trained to its end."""
MODELS = "models"
"""The name of the choice among the rows."""
TABLES = {field.name: "model" for field in fields(ModelOptions)} | {field.name: "recipe" for field in fields(Recipe)}
"""The table of an experiment's file in which each field stands."""


@dataclass(frozen=True)
class Tuned:
    """The result of a search."""

    trials: list[dict[str, Any]]
    """One row each, the best first: number, state, validation accuracy or R2, epochs, and the values that it has."""
    file: Path
    """An experiment with the values of the best trial, for `pointset.read_experiment`."""


@dataclass(frozen=True)
class Search:
    """What is searched: an experiment's file, and its table [search]."""

    content: Mapping[str, Any]
    """The file, without the table."""
    space: Mapping[str, "BaseDistribution"]
    seed: int
    validation: float

    @classmethod
    def of(cls, path: Path, seed: int = 0, validation: float | None = None, **changes: Any) -> "Search":
        """Read and check a search; `validation` defaults to the recipe's, or 0.2; `changes` are keys of the file."""
        require_extra("tune", "a search", "optuna", "tomli_w")
        from optuna.distributions import CategoricalDistribution

        content = read_content(path) | changes
        try:
            given = content.pop("search", {})
            check("search", given, dict[str, Any])
            experiment = experiment_from(content)
            if not isinstance(experiment.task, ShapeTask):
                raise PointsetError("only networks for shapes can be tuned: leave out the task, or write regression")
            space = {name: _distribution(name, value, experiment) for name, value in given.items()}
            if fixed := [name for name in space if any(name in entry.changes for entry in experiment.models)]:
                raise PointsetError(f"{fixed[0]} is given for a model and searched: leave out either")
            if networkless := {entry.name for entry in experiment.models} & {*experiment.task.baselines}:
                raise PointsetError(f"{min(networkless)} has no options to tune: leave it out")
            if len(experiment.models) > 1:
                space[MODELS] = CategoricalDistribution([json.dumps(label) for label in experiment.labels])
            if not space:
                raise PointsetError(
                    "a search needs a table [search], such as learning_rate = {low = 1e-4, high = 1e-2}"
                )
            share = experiment.recipe.validation or VALIDATION if validation is None else validation
            replace(experiment.recipe, validation=share)
            if not share:
                raise PointsetError("validation must be above 0, such as 0.2: trials are judged on it")
        except PointsetError as error:
            raise PointsetError(f"{path}: {error}") from error
        return cls(content, space, seed, share)

    def with_values(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The file with values that Optuna chose."""
        content = {key: dict(value) if isinstance(value, dict) else value for key, value in self.content.items()}
        for name, value in values.items():
            if name == MODELS:
                row = experiment_from(self.content).entry(value)
                content["models"] = [{"name": row.name, "label": row.label, **row.changes}]
                published = content.pop("published", {})
                content |= {"published": {value: published[value]}} if value in published else {}
            else:
                content.setdefault(TABLES[name], {})[name] = value
        return content


def run_search(search: Search, out: Path, trials: int, workers: Workers, progress: bool = True) -> Tuned:
    """Run the trials that the folder does not have yet, reproducibly with one worker; it has `best.toml` at the end."""
    from joblib import delayed
    from optuna.trial import TrialState

    check("trials", trials, Count)
    workers.check()
    experiment = experiment_from(search.content)
    task = experiment.task
    assert isinstance(task, ShapeTask)
    train = load_split(task.data, "train", task.sets_of(task.points[0]), progress=progress)  # builds a missing pool
    if train.targets is None:
        require_classes(train)
    with owned(out, f"another process is searching in {out}: wait for it, or choose another folder"):
        described = {**vars(search), "space": {name: repr(space) for name, space in search.space.items()}}
        claim(out / "search.json", described, list(described), "search")
        study = _study(out, search.seed)
        for trial in study.trials:  # those in which an earlier call was killed are the next ones
            if trial.state == TrialState.RUNNING:
                study.tell(trial.number, state=TrialState.FAIL)
                study.enqueue_trial(trial.params, user_attrs={"run": trial.user_attrs.get("run", trial.number)})
        if (left := trials - len(_ended(study))) > 0:
            jobs = (delayed(_try)(search, out.absolute()) for _ in range(left))
            results = run_in_workers(jobs, workers, workers.at_once(left, experiment.threads), experiment.threads)
            for _ in followed(results, "tuning", "trial", left, show=progress):
                pass
        return _write_best(search, out)


def _distribution(name: str, given: Any, experiment: Experiment) -> "BaseDistribution":
    """Optuna's form of a range or a choice, of which every end and every entry is a value of the field."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if name not in TABLES:
        raise PointsetError(f"search: {unknown_key(name, list(TABLES))}")
    distribution: BaseDistribution
    try:
        if isinstance(given, list):
            tried, distribution = given, CategoricalDistribution([json.dumps(value) for value in given])
        else:
            tried = [given["low"], given["high"]]
            whole = all(isinstance(value, int) for value in given.values())  # log is true or false
            distribution = (IntDistribution if whole else FloatDistribution)(**given)
    except (ValueError, TypeError, KeyError) as error:
        known = "a list of values, or a table with low and high, and perhaps log or step"
        raise PointsetError(f"search.{name} must be {known}: {one_line(error, REPEATED)}") from error
    for value in tried:
        (experiment.model if TABLES[name] == "model" else experiment.recipe).changed({name: value})
    return distribution


def _values(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a trial; choices are kept as JSON, since Optuna takes no lists."""
    return {name: json.loads(value) if isinstance(value, str) else value for name, value in parameters.items()}


def _study(out: Path, seed: int) -> "Study":
    """The study in a folder; its sampler draws for each trial from a seed of its own, so that it can be resumed."""
    import optuna
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    file = out / "trials.log"
    lock: Any = FileLock(f"{file}.lock")  # the system releases it when its owner is killed
    pruner = optuna.pruners.MedianPruner(n_startup_trials=FIRST, n_warmup_steps=WARM_UP)
    how: dict[str, Any] = {"direction": "maximize", "pruner": pruner, "load_if_exists": True}
    try:
        storage = JournalStorage(JournalFileBackend(str(file), lock))
        study = optuna.create_study(storage=storage, study_name="pointset", **how)
        interrupted = [t for t in study.trials if t.state.name == "FAIL" and "reason" not in t.user_attrs]
        begun = len(study.trials) - len(interrupted)
    except Exception as error:  # Optuna takes its journal as it is
        raise _damaged(file, error) from error
    study.sampler = optuna.samplers.TPESampler(n_startup_trials=8, seed=1_000_003 * seed + begun)
    return study


def _damaged(file: Path, error: Exception) -> PointsetError:
    reason = one_line(error, REPEATED) or type(error).__name__
    return PointsetError(f"{file} is damaged ({reason}): restore it from a copy, or delete {file.parent} and run again")


def _ended(study: "Study") -> list[Any]:
    return [
        trial for trial in study.trials if trial.state.name in ("COMPLETE", "PRUNED") or "reason" in trial.user_attrs
    ]


def _try(search: Search, out: Path) -> None:
    """Train one trial and tell the study what came of it."""
    from optuna.trial import TrialState

    study = _study(out, search.seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        trial = study.ask(dict(search.space))
    run = trial.user_attrs.get("run", trial.number)
    try:
        history, best = _train(search, trial, out / "trials" / f"{run}")
    except Exception as error:  # one trial must not stop the others
        kind = "" if isinstance(error, PointsetError) else f"{type(error).__name__}: "
        trial.set_user_attr("reason", kind + one_line(error, REPEATED))
        study.tell(trial, state=TrialState.FAIL)
        return
    trial.set_user_attr("epochs", len(history))
    if history[-1].get("stopped"):
        study.tell(trial, state=TrialState.PRUNED)
    else:
        study.tell(trial, _score(history[best - 1]))


def _train(search: Search, trial: "Trial", folder: Path) -> tuple[Sequence[Mapping[str, Any]], int]:
    experiment = experiment_from(search.with_values(_values(trial.params)))
    task, (entry, *_) = experiment.task, experiment.models
    assert isinstance(task, ShapeTask)
    recipe = replace(experiment.recipe, validation=search.validation)

    def on_epoch(row: Mapping[str, Any]) -> bool:
        trial.report(_score(row), row["epoch"])
        return trial.should_prune()

    with torch_threads(experiment.threads), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        sets = load_split(task.data, "train", task.sets_of(task.points[0]), progress=False)
        model = task.make_model(entry.name, sets, entry.options(experiment.model), search.seed)
        if (folder / "history.jsonl").exists():
            for row in RunFolder(folder).history():
                trial.report(_score(row), row["epoch"])
        fitted = fit(model, sets, recipe, seed=search.seed, run=folder, progress=False, on_epoch=on_epoch)
    return fitted.history, fitted.best_epoch


def _score(row: Mapping[str, Any]) -> float:
    return float(next(row[name] for name in VALIDATED if name in row))


def _write_best(search: Search, out: Path) -> Tuned:
    import tomli_w

    try:
        rows = sorted(map(_as_row, _ended(_study(out, search.seed))), key=_rank)
        best = {name: rows[0][name] for name in search.space} if rows else {}
    except Exception as error:
        raise _damaged(out / "trials.log", error) from error
    if not rows or rows[0]["state"] != TRAINED:
        raise PointsetError(f"no trial in {out} was trained: {rows[0]['state'] if rows else 'there is none'}")
    text = tomli_w.dumps(search.with_values(best))
    file = write_for_user(out / "best.toml", lambda temporary: temporary.write_text(text, encoding="utf-8"))
    return Tuned(rows, file)


def _as_row(trial: Any) -> dict[str, Any]:
    state = {"COMPLETE": TRAINED, "PRUNED": "ended early", "FAIL": trial.user_attrs.get("reason")}[trial.state.name]
    row = {"trial": trial.number, "state": state, "validation": trial.value}
    return row | {"epochs": trial.user_attrs.get("epochs", 0), **_values(trial.params)}


def _rank(row: Mapping[str, Any]) -> tuple[bool, float, int]:
    return row["state"] != TRAINED, -(row["validation"] or 0.0), row["trial"]
