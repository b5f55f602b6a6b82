"""Seeds and rows of one experiment that were run on several days or machines: joined to one saved comparison.

results/NAME/predictions.npz has what joining takes beside results.csv: `predicted` [runs, shapes], the class that each
run gave to each test shape, in the order of the lines of results.csv, and `labels` [shapes].
"""

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8
from numpy import ndarray

from pointset import read_experiment
from pointset.comparison.experiment import Entry, Experiment
from pointset.comparison.metric import Size
from pointset.comparison.results import Comparison
from pointset.comparison.runs import Finished, of_run
from pointset.comparison.statistics import compare_pairs
from pointset.comparison.tables import rows_and_pairs, table_file
from pointset.errors import PointsetError
from pointset.evaluation.costs import Cost
from pointset.evaluation.predictions import load_predictions
from pointset.runs.atomic import write_atomically
from pointset.runs.spreadsheets import as_csv, read_csv
from pointset.training.recipe import Precision

PREDICTIONS = "predictions.npz"
COST = tuple(field.name for field in fields(Cost))
MAY_DIFFER = ("seeds", "robustness_seeds", "robustness_points", "data", "title", "published", "models")


@dataclass(frozen=True)
class PredictedRuns:
    """Runs, and the class that each gave to each test shape."""

    lines: list[dict[str, str]]
    """Of results.csv."""
    predicted: UInt8[ndarray, "runs shapes"]
    labels: Int[ndarray, " shapes"]

    @classmethod
    def of(cls, comparison: Path, content: Mapping[str, Any]) -> "PredictedRuns":
        """Of the folder of a finished comparison, whose results.json says this."""
        entries = {entry.label: entry for entry in map(Entry.of, content["configuration"]["models"])}
        lines = read_csv(comparison / "results.csv")
        names = [f"{entries[one['model']].slug}{of_run(int(one['points']), int(one['seed']))}" for one in lines]
        runs = [load_predictions(comparison / "runs" / name) for name in names]
        if any(not np.array_equal(run.labels, runs[0].labels) for run in runs):
            raise PointsetError(f"the runs in {comparison} have different test shapes: start their command again")
        return cls(lines, np.stack([run.predictions for run in runs]).astype(np.uint8), runs[0].labels)

    @classmethod
    def kept(cls, folder: Path) -> "PredictedRuns":
        """Of a folder of results/."""
        if not (folder / PREDICTIONS).exists():
            raise PointsetError(f"{folder} has no {PREDICTIONS} to add runs to: leave --add out, which replaces it")
        with np.load(folder / PREDICTIONS, allow_pickle=False) as file:
            return cls(read_csv(folder / "results.csv"), file["predicted"], file["labels"])

    def keep(self, folder: Path) -> None:
        """Write predictions.npz into a folder of results/."""
        stream = io.BytesIO()
        np.savez_compressed(stream, predicted=self.predicted, labels=self.labels)
        write_atomically(folder / PREDICTIONS, lambda temporary: temporary.write_bytes(stream.getvalue()))

    def joined(self, other: "PredictedRuns", experiment: Experiment) -> "PredictedRuns":
        """Both, in the order of the experiment's sizes, rows and seeds.

        Raises:
            PointsetError: both have the same run, or were tested on different shapes.
        """
        if not np.array_equal(self.labels, other.labels):
            raise PointsetError("both were tested on different shapes: runs on one test set can be joined")
        lines = [*self.lines, *other.lines]
        keys = [_place(line, experiment) for line in lines]
        if len(set(keys)) < len(keys):
            raise PointsetError("a run of the comparison is kept already: leave --add out, which replaces what is kept")
        places = sorted(range(len(keys)), key=keys.__getitem__)
        predicted = np.concatenate([self.predicted, other.predicted])
        return PredictedRuns([lines[place] for place in places], predicted[places], self.labels)

    def runs(self, experiment: Experiment) -> list[Finished]:
        """What came of each run."""
        metrics = [metric.name for metric in experiment.task.measured]
        return [
            Finished(
                line["model"],
                int(line["points"]),
                int(line["seed"]),
                metrics={name: float(line[name]) for name in metrics},
                parameters=int(line["parameters"]),
                seconds=float(line["seconds"]),
                length=int(line[experiment.task.unit]),
                tested=int(line[experiment.task.sets_are]),
            )
            for line in self.lines
        ]


@dataclass(frozen=True)
class Joined:
    """A saved comparison with further seeds or rows."""

    content: dict[str, Any]
    """As results.json has it."""
    tables: dict[str, str]
    """By file name."""
    predicted_runs: PredictedRuns


def join(file: Path, kept: Path, comparison: Path, content: Mapping[str, Any]) -> Joined:
    """The runs that are kept and those of a finished comparison, as one.

    Args:
        file: of the experiment.
        kept: its folder in results/.
        comparison: the folder of the finished comparison, whose costs are taken for the rows that it has.
        content: what its results.json says.

    Raises:
        PointsetError: they are not of one experiment, or share a run.
    """
    before = PredictedRuns.kept(kept)
    about = json.loads((kept / "about.json").read_text(encoding="utf-8"))
    configuration = content["configuration"]
    experiment = _as_trained(read_experiment(file), about["precision"].partition(" and ")[0])
    models = _models(about["models"], configuration["models"], experiment)
    if models is None or about["protocol"] != protocol_of(configuration):
        raise PointsetError(f"{comparison} has another protocol than {kept}: leave --add out, which replaces it")
    predicted_runs = before.joined(PredictedRuns.of(comparison, content), experiment)
    joined = _comparison(experiment, predicted_runs, [*about["rows"], *map(_with_cost, content["rows"])], comparison)
    tables = {"table.md": table_file(joined), "results.csv": as_csv(predicted_runs.lines)}
    if (comparison / "robustness.csv").exists() or (kept / "robustness.csv").exists():
        files = [folder / "robustness.csv" for folder in (kept, comparison)]
        lines = [line for path in files if path.exists() for line in read_csv(path)]
        tables["robustness.csv"] = as_csv(sorted(lines, key=lambda line: _place(line, experiment)))
    return Joined(
        {**content, "configuration": {**configuration, "models": models}, **rows_and_pairs(joined)},
        tables,
        predicted_runs,
    )


def _as_trained(experiment: Experiment, precision: Precision) -> Experiment:
    """With the precision of the first runs: "auto" in the file would be measured again, on this machine."""
    return experiment.changed(recipe=replace(experiment.recipe, precision=precision))


def _models(
    kept: list[dict[str, Any]], added: list[dict[str, Any]], experiment: Experiment
) -> list[dict[str, Any]] | None:
    """The rows of both in the experiment's order; None where one is not the experiment's or is built in two ways."""
    by_label = {model["label"]: model for model in [*kept, *added]}
    known = set(by_label) <= set(experiment.labels)
    if not known or any(model != by_label[model["label"]] for model in kept):
        return None
    return [by_label[label] for label in experiment.labels if label in by_label]


def _with_cost(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of results.json, as about.json has them."""
    return {"label": row["model"], "points": row["points"], **(row["cost"] or {})}


def _comparison(
    experiment: Experiment, predicted_runs: PredictedRuns, rows: Sequence[Mapping[str, Any]], folder: Path
) -> Comparison:
    """What came of all runs, with the costs of these rows; the last of a row counts."""
    runs = predicted_runs.runs(experiment)
    scores: dict[Size, dict[str, dict[int, ndarray]]] = {}
    for run, predicted in zip(runs, predicted_runs.predicted, strict=True):
        scores.setdefault(run.points, {}).setdefault(run.model, {})[run.seed] = predicted == predicted_runs.labels
    costs: dict[Size, dict[str, Cost]] = {}
    for row in rows:
        if row.get(COST[0]) is not None:  # baselines have none
            costs.setdefault(row["points"], {})[row["label"]] = Cost(**{name: row[name] for name in COST})
    pairs = {size: compare_pairs(by_label, experiment.task.pooled) for size, by_label in scores.items()}
    seeds = tuple(sorted({run.seed for run in runs}))
    return Comparison(experiment.changed(seeds=seeds), runs, pairs, costs, [], folder)


def protocol_of(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """What has to be the same where runs are joined: all but rows, seeds, names, and how products are rounded."""
    kept = {key: value for key, value in configuration.items() if key not in MAY_DIFFER}
    return {**kept, "recipe": {key: value for key, value in kept["recipe"].items() if key != "precision"}}


def _place(line: Mapping[str, str], experiment: Experiment) -> tuple[int, int, int]:
    """What lines are sorted by: size, row, seed."""
    size, row = experiment.task.sizes.index(int(line["points"])), experiment.labels.index(line["model"])
    return size, row, int(line["seed"])
