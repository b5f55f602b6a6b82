"""What lies in the run folders of one size of a comparison, read when a figure asks for it."""

import json
from collections.abc import Iterator
from statistics import fmean
from typing import Any

import numpy as np

from pointset.comparison.cells import Cell
from pointset.comparison.comparing import Comparison
from pointset.comparison.tables import Row
from pointset.evaluation import Evaluation
from pointset.evaluation.calibration import Reliability, reliability
from pointset.evaluation.robustness import Robustness
from pointset.runs.atomic import read_json


class Evidence:
    """The finished cells of one size of set; iterating gives the models."""

    def __init__(self, comparison: Comparison, points: int) -> None:
        self.comparison = comparison
        self.points = points
        self.rows: dict[str, Row] = {row.model: row for row in comparison.rows if row.points == points}

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def cells(self, model: str) -> list[Cell]:
        """Of one model, in the order of the seeds."""
        return [cell for cell in self.comparison.cells if (cell.model, cell.points) == (model, self.points)]

    def curve(self, model: str, name: str) -> list[float]:
        """A column of the training histories, mean over seeds, as long as the shortest run; empty if there is none."""
        histories = [self._history(cell) for cell in self.cells(model)]
        columns = [[row[name] for row in history if name in row] for history in histories]
        return [fmean(values) for values in zip(*columns, strict=False)]

    def evaluation(self, model: str) -> Evaluation:
        """The predictions of the first seed."""
        return self.comparison.evaluation(self.cells(model)[0])

    def reliability(self, model: str) -> Reliability:
        """Of the first seed, in bins of equal mass."""
        found = self.evaluation(model)
        return reliability(found.logits, found.labels, "mass")

    def by_size(self, model: str) -> dict[int, float]:
        """Accuracy on smaller test sets, mean over the seeds that were tested so; empty if none was."""
        found = [content["by_size"] for content in self._robustness(model).values()]
        return {int(size): fmean(curve[size] for curve in found) for size in found[0]} if found else {}

    def robustness(self, model: str) -> dict[int, Robustness]:
        """Errors on corrupted test sets, for each seed that was tested so."""
        return {seed: Robustness.from_dict(content) for seed, content in self._robustness(model).items()}

    def corruption_errors(self, model: str) -> dict[str, list[float]]:
        """Errors at each severity by corruption, mean over the seeds that were tested so; empty if none was."""
        runs = list(self.robustness(model).values())
        found = [[list(errors.values()) for errors in one.errors.values()] for one in runs]
        names = list(runs[0].errors) if runs else []
        return dict(zip(names, np.mean(found, axis=0).tolist() if found else [], strict=True))

    def _robustness(self, model: str) -> dict[int, dict[str, Any]]:
        files = {cell.seed: self.comparison.run_folder(cell) / "robustness.json" for cell in self.cells(model)}
        return {seed: read_json(file) for seed, file in files.items() if file.exists()}

    def _history(self, cell: Cell) -> list[dict[str, Any]]:
        file = self.comparison.run_folder(cell) / "history.jsonl"
        return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
