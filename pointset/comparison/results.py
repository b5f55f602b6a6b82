"""The results of an experiment: its finished runs with their statistics and costs."""

import html
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec
import numpy as np
from torch import nn

from pointset.comparison.experiment import Experiment
from pointset.comparison.metric import Metric, Row, Size, Summary
from pointset.comparison.ranking import Ranking, rank_models
from pointset.comparison.runs import Run, of_size
from pointset.comparison.tables import BOLD, as_latex, format_table, make_cells
from pointset.comparison.task import Results, Task
from pointset.configuration import AttentionOptions
from pointset.errors import REPEATED, PointsetError, one_line, quoted, warn_caller
from pointset.evaluation.costs import Cost, measure_costs
from pointset.runs import records
from pointset.runs.provenance import command, machine, origin
from pointset.training.checkpoints import RunFolder
from pointset.training.recipe import Recipe

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class _Split(TypedDict, total=False):
    """The counts of one split, in the file of the sets."""

    split: str
    shapes: int
    skipped: int


@dataclass(frozen=True)
class Comparison:
    """The finished runs of an experiment and their statistics, as returned by `run_experiment` and `compare`."""

    experiment: Experiment
    """The experiment that was run."""
    runs: list[Run]
    """Finished runs, sorted by size, then model, then seed, each in the experiment's order."""
    rankings: Mapping[Size, Ranking]
    """For each set size, the ranking of the models, with tests of all pairs."""
    costs: Mapping[Size, Mapping[str, Cost]]
    """For each set size, the costs of the models, by label."""
    failures: Sequence[Run]
    """Runs that could not be finished, each with its reason."""
    folder: Path
    """Folder of the runs and results."""

    def __repr__(self) -> str:
        """Return task, numbers of models and runs, and folder, in one line."""
        models = len({run.model for run in self.runs})
        failed = f", {len(self.failures)} failed" if self.failures else ""
        data = self.experiment.task.title
        return (
            f"Comparison of {models} model{'s' * (models != 1)} on {data}: {len(self.runs)} runs "
            f"finished{failed}; in {self.folder}"
        )

    def _repr_html_(self) -> str:
        """Return the repr, the table and its caption, for notebooks."""
        return (
            f"<p>{html.escape(repr(self))}</p>{self.table('html')}<p><small>{html.escape(self.caption())}</small></p>"
        )

    @cached_property
    def metrics(self) -> list[Metric]:
        """The task's metrics that all runs have."""
        measured = self.experiment.task.metrics
        return [metric for metric in measured if all(metric.name in run.metrics for run in self.runs)]

    @cached_property
    def rows(self) -> list[Row]:
        """One row for each size and model with a finished run, in the experiment's order."""
        groups = itertools.groupby(self.runs, key=lambda run: (run.points, run.model))
        return [self._row(size, label, list(runs)) for (size, label), runs in groups]

    def _row(self, size: Size, label: str, runs: Sequence[Run]) -> Row:
        """Return the row of one model at one size; `runs` are those of the model."""
        first, ranking = self.metrics[0].name, self.rankings[size]
        metrics = {}
        for metric in self.metrics:
            # If there are set sizes, published values are those of the first metric.
            known = self.experiment.published.get(label, {}) if size is None or metric.name == first else {}
            published = known.get(metric.name if size is None else size)
            metrics[metric.name] = Summary.of([run.metrics[metric.name] for run in runs], metric, published)
        return Row(
            model=label,
            points=size,
            seeds=len(runs),
            metrics=metrics | {first: replace(metrics[first], interval=ranking.row(label).interval)},
            parameters=runs[0].result.parameters,
            seconds=fmean(run.result.seconds for run in runs),
            cost=self.costs.get(size, {}).get(label),
            best=label == ranking.best,
            against_best=ranking.against_best(label),
        )

    def table(self, style: str = "simple", brief: bool = False) -> str:
        """Return the table in one of tabulate's formats ("simple", "github", ...) or as "latex".

        `brief` leaves out columns that do not fit a terminal.
        """
        cells = make_cells(self.rows, self.metrics, brief)
        return as_latex(cells) if style == "latex" else format_table(cells, style, numbers_right=True)

    def to_latex(self, label: str = "tab:comparison") -> str:
        """Return the table as a floating LaTeX table (booktabs) with caption and label. The best means are bold."""
        cells, title = make_cells(self.rows, self.metrics), self.metrics[0].title
        for row, cell in zip(self.rows, cells, strict=True):
            cell[title] = cell[title].join(BOLD) if row.best else cell[title]
        return as_latex(cells, f"{self.caption()}.", label)

    def plot(self, points: Size = None) -> "Figure":
        """Draw each model's mean of the first metric with its 95 % interval, beginning with the best model.

        Args:
            points: the set size; default: the first set size.

        Returns:
            A matplotlib figure; `savefig` or `pointset.viz.save` writes it.
        """
        from pointset.comparison.charts import draw_means  # matplotlib, which training does not need

        if points not in (None, *self.rankings):
            sizes = ", ".join(map(str, self.rankings))
            raise PointsetError(
                f"points must be a set size of the comparison ({sizes}), got {quoted(points)}: for a file, use "
                "comparison.plot().savefig(path)"
            )
        return draw_means(self.results(points or self.experiment.task.sizes[0]))

    def sentences(self) -> list[str]:
        """Return the sentences of each size's ranking, and one about baselines that no network beats significantly."""
        experiment, metric = self.experiment, self.metrics[0]
        baselines = {entry.label for entry in experiment.models if entry.name in experiment.task.baselines}
        sentences = []
        for size, ranking in self.rankings.items():
            networks = [row.model for row in ranking.rows if row.model not in baselines]
            unbeaten = [
                row.model
                for row in ranking.rows
                if row.model in baselines
                and not any(
                    (pair := ranking.pair(network, row.model)).significant and metric.merit(pair.difference) > 0
                    for network in networks
                )
            ]
            at = f"At {size:,} points: " if size is not None and len(self.rankings) > 1 else ""
            sentences += [f"{at}{text}" for text in ranking.sentences()]
            if networks and unbeaten:
                sentences.append(f"{at}No network is significantly better than {', '.join(unbeaten)}.")
        return sentences

    def caption(self) -> str:
        """Return the caption of the table: data, training, tested epoch and statistics."""
        experiment, task, recipe = self.experiment, self.experiment.task, self.experiment.recipe
        seeds = len(experiment.seeds)
        networks = [entry for entry in experiment.models if entry.name not in task.baselines]
        options = [entry.options(experiment.model) for entry in networks or experiment.models]
        widths = " and ".join(dict.fromkeys(str(one.dim) for one in options))
        forms = " and ".join(dict.fromkeys(one.attention.form for one in options))
        form = "" if forms == AttentionOptions().form else f", form {forms}"
        training, test = _protocol_in_words(task, recipe)
        return "".join(
            (
                f"{task.title}, {seeds} seed{'s' * (seeds > 1)}, {training}",
                f", {recipe.precision}" * (recipe.precision != "float32"),
                f", width {widths}{form}; {test}",
                ", mean ± standard deviation over seeds" * (seeds > 1),
                self._left_out(),
            )
        )

    def _left_out(self) -> str:
        file = self.folder / f"sets{of_size(self.experiment.task.sizes[0])}.json"  # the counts are equal at all sizes
        if not file.exists():
            return ""
        remedy = "run the comparison in another folder"
        counts = [
            f"{skipped} of {skipped + split.get('shapes', 0)} {split.get('split', '')} shapes"
            for split in records.read_json(file, remedy, dict[str, _Split]).values()
            if (skipped := split.get("skipped"))
        ]
        return f"; left out, because they could not be used: {', '.join(counts)}" if counts else ""

    def run(self, label: str, seed: int, points: Size = None) -> Run:
        """Return a finished run, with its folder and options. By default, `points` is the first set size."""
        points = points or self.experiment.task.sizes[0]
        for run in self.runs:
            if (run.model, run.points, run.seed) == (label, points, seed):
                return run
        known = "; ".join(run.name for run in self.runs)
        raise PointsetError(f"{quoted(label)}, seed {seed} is not a finished run: choose from {known}")

    def model(self, label: str, seed: int, points: Size = None) -> nn.Module:
        """Return the trained model of a finished run, in evaluation mode; see `run`."""
        run = self.run(label, seed, points)
        return self.experiment.task.train(run.trial).model

    def results(self, points: Size) -> Results:
        """Return the results of one size, as data for a report."""
        task, entries = self.experiment.task, self.experiment.models
        names = {entry.label: task.zoo_name(entry.name).partition("-") for entry in entries}
        rows = {row.model: row for row in self.rows if row.points == points}
        runs = [run for run in self.runs if run.points == points]
        return Results(
            points,
            self.metrics,
            self.experiment.recipe,
            parts={label: (encoder, pooling) for label, (encoder, _, pooling) in names.items()},
            rows=rows,
            folders={label: {run.seed: run.folder for run in runs if run.model == label} for label in rows},
        )


def _protocol_in_words(task: Task, recipe: Recipe) -> tuple[str, str]:
    """Return two parts of a caption: the training's length and set sizes, and the test sets with the tested epoch."""
    if task.block:
        return f"{recipe.steps:,} steps of {recipe.batch_size} sets", "last step"
    length = recipe.length_in_words
    length += f", at least {recipe.min_steps} steps" if recipe.min_steps and not recipe.steps else ""
    length += f", training sets of {recipe.sizes_in_words}" if recipe.sizes_in_words else ""
    epoch = "last epoch" if recipe.patience is None else "best validation epoch"
    return length, f"every test {task.sets.removesuffix('s')}, {epoch}"


def gather(experiment: Experiment, out: Path, outcomes: Sequence[Run], measure: bool = True) -> Comparison:
    """Make a comparison from ended runs. With `measure`, costs are measured if no earlier call has saved them."""
    task, labels, seeds = experiment.task, experiment.labels, experiment.seeds
    runs = sorted(
        (run for run in outcomes if not run.reason),
        key=lambda run: (task.sizes.index(run.points), labels.index(run.model), seeds.index(run.seed)),
    )
    by_size = {size: [run for run in runs if run.points == size] for size in task.sizes}
    rankings: dict[Size, Ranking] = {}
    for size, group in by_size.items():
        by_model = itertools.groupby(group, key=lambda run: run.model)
        scores = {model: np.stack([_scores(task, run) for run in own]) for model, own in by_model}
        rankings |= {size: rank_models(scores, metric=task.metrics[0])} if scores else {}
    return Comparison(
        experiment,
        runs,
        rankings=rankings,
        costs={size: _costs(experiment, out, group, size, measure) for size, group in by_size.items()},
        failures=[run for run in outcomes if run.reason],
        folder=out,
    )


def _scores(task: Task, run: Run) -> np.ndarray:
    return task.scores(run.folder) if task.scores else np.array([run.metrics[task.metrics[0].name]])


def _costs(experiment: Experiment, out: Path, runs: Sequence[Run], size: Size, measure: bool) -> dict[str, Cost]:
    """Return the costs of networks with a finished run. With `measure`, all costs are measured unless all are saved."""
    task, threads, trained = experiment.task, experiment.threads, {run.model for run in runs}
    entries = {e.label: e for e in experiment.models if e.label in trained and e.name not in task.baselines}
    file, costs = out / f"costs{of_size(size)}.json", dict[str, Cost]()
    if file.exists():
        remedy = f"delete {file} and run the same command again to measure them"
        costs = records.parse(
            file,
            lambda content: msgspec.convert(json.loads(content)["models"], dict[str, Cost]),
            "the costs of models",
            remedy,
        )
    if measure and not entries.keys() <= costs.keys():
        models = [task.build(entry.name, entry.options(experiment.model), 0, size) for entry in entries.values()]
        try:
            measured = measure_costs(models, size or task.largest, threads=threads)
        except Exception as error:  # a user-defined module can fail on random sets
            warn_caller(f"costs were not measured: {type(error).__name__}: {one_line(error, REPEATED)}")
            return {}
        costs = dict(zip(entries, measured, strict=True))
        as_dicts = {label: asdict(cost) for label, cost in costs.items()}
        records.write_json(file, {"models": as_dicts, "machine": machine() | {"threads": threads}})
    return {label: costs[label] for label in entries if label in costs}


def as_dict(comparison: Comparison) -> dict[str, Any]:
    """Return the whole comparison as plain data: rows, pairs, runs, failures, configuration and origins."""
    return {
        "rows": [asdict(row) for row in comparison.rows],
        "pairs": {str(size or "all"): one.as_dict()["pairs"] for size, one in comparison.rankings.items()},
        "conclusions": {str(size or "all"): one.sentences() for size, one in comparison.rankings.items()},
        "runs": [run.as_dict() | {"folder": run.folder.name} for run in comparison.runs],
        "failures": [{**run.place, "reason": run.reason} for run in comparison.failures],
        "configuration": comparison.experiment.as_dict(),
        "origins": origins(comparison),
        **origin(),
        "command": command(),
    }


def origins(comparison: Comparison) -> list[dict[str, Any]]:
    """Return the distinct combinations of versions, machine and commit, each with its number of runs."""
    descriptions = [RunFolder(run.folder).description() for run in comparison.runs]
    origins = [{name: about.get(name) for name in ("versions", "machine", "commit")} for about in descriptions]
    distinct = [own for number, own in enumerate(origins) if own not in origins[:number]]
    return [{**own, "runs": origins.count(own)} for own in distinct]
