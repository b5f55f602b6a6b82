"""Collect the finished runs of an experiment into a comparison."""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from torch import nn

from pointset.comparison.evidence import Evidence
from pointset.comparison.experiment import Experiment
from pointset.comparison.grid import make_run
from pointset.comparison.metric import Metric
from pointset.comparison.rows import Row, Summary
from pointset.comparison.run_spec import Size, of_size
from pointset.comparison.runs import Failure, Finished, Run
from pointset.comparison.statistics import Pair, compare_pairs
from pointset.comparison.tables import make_table
from pointset.errors import PointsetError, quoted
from pointset.evaluation.costs import Cost, measure_costs
from pointset.runs import digests
from pointset.runs.claims import read_description
from pointset.runs.provenance import machine
from pointset.training.checkpoints import RunFolder


@dataclass(frozen=True)
class Comparison:
    """The finished runs of an experiment and their statistics, as returned by `run_experiment` and `compare`.

    Example:
        >>> from pointset.comparison.experiment import Entry, Experiment
        >>> from pointset.runs.workers import Workers
        >>> from pointset.tasks import create_task, task_recipe
        >>> experiment = Experiment(
        ...     task=create_task("max-regression"),
        ...     models=(Entry("rff-max"),),
        ...     seeds=(0,),
        ...     recipe=task_recipe(steps=2, batch_size=4),
        ... )
        >>> comparison = pointset.run_experiment(experiment, "runs/maxima", Workers(1), progress=False, report=False)
        >>> len(comparison.history("rff-max", 0)), comparison.failures
        (1, [])
        >>> print(comparison.table().splitlines()[2].split()[0])
        rff-max
    """

    experiment: Experiment
    """The experiment that was run."""
    runs: list[Finished]
    """Finished runs, sorted by size, then model, then seed, each in the experiment's order."""
    pairs: Mapping[Size, list[Pair]]
    """The comparisons of all pairs of models, by size."""
    costs: Mapping[Size, Mapping[str, Cost]]
    """Costs of the models, by size and label."""
    failures: Sequence[Failure]
    """Runs that could not be finished, each with its error."""
    folder: Path
    """Folder of the runs and results."""

    def __repr__(self) -> str:
        """One line with task, numbers of models and runs, and folder."""
        models = len({run.model for run in self.runs})
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return (
            f"Comparison of {models} model{'s' * (models != 1)} on {self.experiment.task.title}: {len(self.runs)} runs "
            f"finished{failed}; in {self.folder}"
        )

    def _repr_html_(self) -> str:
        """The repr, the table and its caption, for notebooks."""
        return (
            f"<p>{html.escape(repr(self))}</p>{self.table('html')}<p><small>{html.escape(self.caption())}</small></p>"
        )

    @property
    def rows(self) -> list[Row]:
        """One row per size and model, in the experiment's order."""
        return make_rows(self.experiment, self.runs, self.pairs, self.costs)

    def table(self, style: str = "simple", brief: bool = False) -> str:
        """The table in one of tabulate's formats ("simple", "github", ...); `brief` has fewer columns."""
        return make_table(self.rows, self.experiment.task.measured, style, brief)

    def caption(self) -> str:
        """The caption of the table: data, training and how the numbers were taken."""
        experiment, task, recipe = self.experiment, self.experiment.task, self.experiment.recipe
        seeds = len(experiment.seeds)
        spread = ", mean ± standard deviation over seeds" if seeds > 1 else ""
        rounded = "" if recipe.precision == "float32" else f", {recipe.precision}"
        return (
            f"{task.title}, {seeds} seed{'s' * (seeds > 1)}, {task.length(recipe)}{rounded}, width "
            f"{experiment.model.dim}, form {experiment.model.form}; {task.taken(recipe)}{spread}{self._left_out()}"
        )

    def _left_out(self) -> str:
        """The numbers of shapes that were left out of the sets, for the caption; they are equal at all sizes."""
        file = self.folder / f"sets{of_size(self.experiment.task.sizes[0])}.json"
        sets = read_description(file, "comparison").values() if file.exists() else []
        lacking = [one for one in sets if isinstance(one, dict) and one.get("skipped")]
        found = [f"{one['skipped']} of {one['skipped'] + one['shapes']} {one['split']} shapes" for one in lacking]
        return f"; left out, because they could not be used: {', '.join(found)}" if found else ""

    def run(self, label: str, seed: int, points: Size = None) -> Run:
        """A finished run, with its folder and options.

        Args:
            label: label of the row.
            seed: seed of the run.
            points: size of the sets; default: the first size of the experiment.
        """
        points = points or self.experiment.task.sizes[0]
        if not any((one.model, one.points, one.seed) == (label, points, seed) for one in self.runs):
            known = "; ".join(one.name for one in self.runs)
            raise PointsetError(f"{quoted(label)}, seed {seed} is not a finished run: choose from {known}")
        return make_run(self.experiment, self.folder, self.experiment.entry(label), points, seed)

    def model(self, label: str, seed: int, points: Size = None) -> nn.Module:
        """The trained model of a finished run, in evaluation mode; see `run`."""
        run = self.run(label, seed, points)
        return run.task.train(run, run.recipe, run.folder).model

    def history(self, label: str, seed: int, points: Size = None) -> list[dict[str, Any]]:
        """The training history of a finished run, one row per epoch; see `run`."""
        return RunFolder(self.run(label, seed, points).folder).history()

    def evidence(self, points: Size) -> Evidence:
        """The finished runs of one size, as data for a report."""
        task, rows = self.experiment.task, {row.model: row for row in self.rows if row.points == points}
        folders: dict[str, dict[int, Path]] = {label: {} for label in rows}
        for run in self.runs:
            if run.points == points:
                folders[run.model][run.seed] = self.run(run.model, run.seed, points).folder
        first = next((folder for by_seed in folders.values() for folder in by_seed.values()), None)
        return Evidence(
            points=points,
            metric=task.measured[0],
            recipe=self.experiment.recipe,
            parts={entry.label: _parts(task.zoo_name(entry.name)) for entry in self.experiment.models},
            rows=rows,
            folders=folders,
            baselines=task.baselines(first) if first else {},
        )


def _parts(name: str) -> tuple[str, str]:
    """Encoder and pooling of a name in the zoo."""
    encoder, _, pooling = name.partition("-")
    return encoder, pooling


def make_rows(
    experiment: Experiment,
    runs: Sequence[Finished],
    pairs: Mapping[Size, Sequence[Pair]],
    costs: Mapping[Size, Mapping[str, Cost]],
) -> list[Row]:
    """Make one row for every size and model with a finished run."""
    rows = []
    for size in experiment.task.sizes:
        groups = {label: [r for r in runs if (r.model, r.points) == (label, size)] for label in experiment.labels}
        groups = {label: group for label, group in groups.items() if group}
        best = _best_row(groups, experiment.task.measured[0])
        for label, group in groups.items():
            metrics = {
                metric.name: Summary.of(
                    [run.metrics[metric.name] for run in group], metric, experiment.published_of(label, size, metric)
                )
                for metric in experiment.task.measured
            }
            below, cost = _against(pairs.get(size, ()), best, label), costs.get(size, {}).get(label)
            seconds = fmean(run.seconds for run in group)
            row = Row(label, size, len(group), metrics, group[0].parameters, seconds, cost, below, label == best)
            rows.append(row)
    return rows


def _best_row(groups: Mapping[str, Sequence[Finished]], metric: Metric) -> str:
    """The label with the best mean of a metric, the first of equals; "" without rows."""
    sign = 1.0 if metric.higher_is_better else -1.0
    means = {label: sign * fmean(run.metrics[metric.name] for run in group) for label, group in groups.items()}
    return max(means, key=lambda label: means[label], default="")


def _against(pairs: Sequence[Pair], best: str, label: str) -> Pair | None:
    for pair in pairs:
        if (pair.first, pair.second) == (best, label):
            return pair
        if (pair.second, pair.first) == (best, label):
            return pair.reversed()
    return None


def gather(
    experiment: Experiment, out: Path, outcomes: Sequence[Finished | Failure], measure: bool = True
) -> Comparison:
    """Make a comparison from the outcomes of runs; `measure` also measures costs that no earlier call has saved."""
    labels, sizes, seeds = experiment.labels, experiment.task.sizes, experiment.seeds
    runs = sorted(
        (outcome for outcome in outcomes if isinstance(outcome, Finished)),
        key=lambda one: (sizes.index(one.points), labels.index(one.model), seeds.index(one.seed)),
    )
    return Comparison(
        experiment,
        runs,
        pairs={size: _pairs(experiment, out, [one for one in runs if one.points == size]) for size in sizes},
        costs={
            size: _costs(experiment, out, [one for one in runs if one.points == size], size, measure) for size in sizes
        },
        failures=[outcome for outcome in outcomes if isinstance(outcome, Failure)],
        folder=out,
    )


def _pairs(experiment: Experiment, out: Path, runs: Sequence[Finished]) -> list[Pair]:
    scores: dict[str, dict[int, Any]] = {}
    for one in runs:
        run = make_run(experiment, out, experiment.entry(one.model), one.points, one.seed)
        scores.setdefault(one.model, {})[one.seed] = experiment.task.scores(run.folder, one.metrics)
    return compare_pairs(scores, experiment.task.pooled)


def _costs(experiment: Experiment, out: Path, runs: Sequence[Finished], size: Size, measure: bool) -> dict[str, Cost]:
    """Costs of the models that have a finished run: saved by an earlier call, or all measured now."""
    trained = {one.model for one in runs}
    entries = [entry for entry in experiment.models if entry.label in trained]
    file = out / f"costs{of_size(size)}.json"
    remedy = f"delete {file} and run the same command again to measure them"
    found = digests.parse(file, _parse_costs, "the costs of models", remedy) if file.exists() else {}
    if measure and not trained <= set(found):
        task, recipe = experiment.task, experiment.recipe
        models = [task.build(entry.name, entry.options(experiment.model), 0, size) for entry in entries]
        elements, threads = task.elements(size), experiment.threads
        costs = measure_costs(models, elements, batch_size=recipe.batch_size, threads=threads)
        found = {entry.label: cost for entry, cost in zip(entries, costs, strict=True)}
        as_dicts = {label: asdict(cost) for label, cost in found.items()}
        digests.write_json(file, {"models": as_dicts, "machine": machine() | {"threads": threads}})
    return {entry.label: found[entry.label] for entry in entries if entry.label in found}


def _parse_costs(content: bytes) -> dict[str, Cost]:
    found = {label: Cost(**cost) for label, cost in json.loads(content)["models"].items()}
    if not all(isinstance(value, int | float) for cost in found.values() for value in asdict(cost).values()):
        raise ValueError("it contains values that are not numbers")
    return found
