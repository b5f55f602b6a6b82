"""Several models, several seeds, one data set, one protocol: one table.

Every cell (model, seed) is a run in its own folder, so a comparison that was cut off goes on where it stopped. Every
cell trains with the same number of threads whatever the number of workers, so the workers change no figure.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tqdm.auto import tqdm

from pointset.atomic import write_atomically, write_json, write_text
from pointset.cells import Cell, Job, run_jobs
from pointset.claims import claim
from pointset.configuration import DataOptions, ModelOptions, Recipe, check_seed
from pointset.errors import PointsetError
from pointset.loading import load_sets
from pointset.provenance import command, machine, versions
from pointset.zoo import check_name

HEADERS = ("model", "accuracy %", "mean-class %", "parameters", "train s")


@dataclass(frozen=True)
class Row:
    """One model over its seeds; deviations are sample deviations, None for a single seed."""

    model: str
    seeds: int
    accuracy: float
    accuracy_std: float | None
    mean_class_accuracy: float
    mean_class_accuracy_std: float | None
    parameters: int
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """The cells of a comparison and the configuration they share."""

    cells: list[Cell]
    configuration: dict[str, Any]

    @property
    def rows(self) -> list[Row]:
        """One row per model, in the order in which the models were given."""
        return [_row(name, [cell for cell in self.cells if cell.model == name]) for name in self.models]

    @property
    def models(self) -> list[str]:
        """The models, in the order in which they were given."""
        return list(dict.fromkeys(cell.model for cell in self.cells))

    def table(self, style: str = "simple") -> str:
        """The table as text; `style` is one of tabulate's formats ("simple", "github", ...)."""
        from tabulate import tabulate

        lines = [
            (
                row.model,
                _percent(row.accuracy, row.accuracy_std),
                _percent(row.mean_class_accuracy, row.mean_class_accuracy_std),
                f"{row.parameters:,}",
                f"{row.seconds:.0f}",
            )
            for row in self.rows
        ]
        align = ("left", *["right"] * (len(HEADERS) - 1))
        return tabulate(lines, HEADERS, tablefmt=style, colalign=align, disable_numparse=True)

    def caption(self) -> str:
        """What the table's figures are, in one sentence."""
        data, recipe = self.configuration["data_options"], self.configuration["recipe"]
        model, seeds = self.configuration["model_options"], self.configuration["seeds"]
        epoch = "last epoch" if recipe["patience"] is None else "best validation epoch"
        spread = ", mean ± standard deviation over seeds" if len(seeds) > 1 else ""
        return (
            f"{self.configuration['data']}, {data['points']} points, {len(seeds)} seed{'s' * (len(seeds) > 1)}, "
            f"{recipe['epochs']} epochs, width {model['dim']}, form {model['form']}; every test shape, {epoch}{spread}"
        )

    def save(self, folder: Path) -> None:
        """Write results.csv (a line per cell), table.md (a line per model) and results.json (everything)."""
        write_atomically(folder / "results.csv", self._write_csv)
        write_text(folder / "table.md", f"{self.table('github')}\n\n{self.caption()}\n")
        content = {
            "rows": [asdict(row) for row in self.rows],
            "cells": [asdict(cell) for cell in self.cells],
            "configuration": self.configuration,
            "versions": versions(),
            "machine": machine(),
            "command": command(),
        }
        write_json(folder / "results.json", content)

    def _write_csv(self, path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, fieldnames=list(Cell.__dataclass_fields__))
            writer.writeheader()
            writer.writerows(asdict(cell) for cell in self.cells)


def compare(
    models: Sequence[str],
    data: str | Path = "shapes10",
    *,
    seeds: Sequence[int] = (0, 1, 2),
    data_options: DataOptions | None = None,
    model_options: ModelOptions | None = None,
    recipe: Recipe | None = None,
    out: str | Path = "runs/compare",
    workers: int | None = None,
    threads: int = 1,
    progress: bool = True,
) -> Comparison:
    """Train and test every model with every seed under one protocol.

    The seed sets weights, order, subsets, augmentation and dropout; test sets are the same for all. The figures are
    those of the last epoch on every test shape (of the best validation epoch when the recipe stops early).

    Args:
        models: names from the zoo.
        data: a card's name or a folder.
        seeds: one run per model and seed.
        data_options: the sets; `DataOptions()` when not given.
        model_options: widths and forms, the same for all; `ModelOptions()` when not given.
        recipe: the training, the same for all; `Recipe()` when not given.
        out: folder for the runs and the results; what is finished there is not done again.
        workers: cells that run at once; by default one per core, divided by the threads.
        threads: torch threads of each cell; they can change results by rounding, so they are part of the protocol.
        progress: show a bar and a line per cell, where the output is a terminal.

    Raises:
        PointsetError: a model or data set is unknown, or `out` holds a comparison under another protocol.
    """
    data_options, model_options = data_options or DataOptions(), model_options or ModelOptions()
    recipe, out = recipe or Recipe(), Path(out)
    _check_choice(models, seeds, workers, threads)
    protocol = {
        "data": str(data),
        "data_options": data_options.as_dict(),
        "model_options": model_options.as_dict(),
        "recipe": recipe.as_dict(),
        "threads": threads,
    }
    # Builds pools that are missing once, before the workers start, and fails early.
    described = {f"{sets.split}_sets": sets.describe() for sets in load_sets(data, data_options, progress=progress)}
    claim(out / "protocol.json", {**protocol, **described}, [*protocol, *described], "comparison")
    jobs = [
        Job(name, seed, str(data), data_options, model_options, recipe, threads, out / "cells" / f"{name}-seed{seed}")
        for seed in seeds
        for name in models
    ]
    done = list(_watched(run_jobs(jobs, workers), len(jobs), progress))
    order = {(name, seed): place for place, (name, seed) in enumerate((m, s) for m in models for s in seeds)}
    cells = sorted(done, key=lambda cell: order[cell.model, cell.seed])
    comparison = Comparison(cells, {"models": list(models), "seeds": list(seeds), **protocol})
    comparison.save(out)
    return comparison


def _check_choice(models: Sequence[str], seeds: Sequence[int], workers: int | None, threads: int) -> None:
    if not models or not seeds:
        raise PointsetError("a comparison needs at least one model and one seed")
    if threads < 1 or (workers is not None and workers < 1):
        raise PointsetError(f"workers={workers} and threads={threads}: give at least 1 of each")
    for seed in seeds:
        check_seed(seed)
    if len(set(models)) < len(models) or len(set(seeds)) < len(seeds):
        raise PointsetError(f"a model or a seed is given twice: models {list(models)}, seeds {list(seeds)}")
    for name in models:
        check_name(name)


def _watched(cells: Iterator[Cell], total: int, progress: bool) -> Iterator[Cell]:
    """Pass the cells on, with a bar and a line for each."""
    with tqdm(total=total, desc="comparing", unit="run", disable=None if progress else True) as bar:
        for cell in cells:
            bar.update()
            if not bar.disable:
                bar.write(f"{cell.model} seed {cell.seed}: {cell.accuracy:.1%} after {cell.seconds:.0f} s")
            yield cell


def _row(name: str, cells: list[Cell]) -> Row:
    accuracies = [cell.accuracy for cell in cells]
    class_accuracies = [cell.mean_class_accuracy for cell in cells]
    return Row(
        model=name,
        seeds=len(cells),
        accuracy=mean(accuracies),
        accuracy_std=_deviation(accuracies),
        mean_class_accuracy=mean(class_accuracies),
        mean_class_accuracy_std=_deviation(class_accuracies),
        parameters=cells[0].parameters,
        seconds=mean(cell.seconds for cell in cells),
    )


def _deviation(values: list[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _percent(value: float, deviation: float | None) -> str:
    return f"{100 * value:.1f}" + ("" if deviation is None else f" ± {100 * deviation:.1f}")
