"""Several models, several seeds, one data set, one protocol: one table.

Every cell (model, seed) is a run in its own folder, so a comparison that was cut off goes on where it stopped. Every
cell trains with the same number of threads whatever the number of workers, so the workers change no figure.
"""

import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from tqdm.auto import tqdm

from pointset.checkpoints import read_json, write_atomically, write_json, write_text
from pointset.configuration import DataOptions, ModelOptions, Recipe
from pointset.data.dataset import AS_RELEASED, PointSets, load_dataset
from pointset.errors import PointsetError
from pointset.evaluation import evaluate
from pointset.provenance import command, machine, versions
from pointset.training import fit
from pointset.zoo import check_name, create_model

HEADERS = ("model", "accuracy %", "mean-class %", "parameters", "train s")


@dataclass(frozen=True)
class Cell:
    """One trained and tested model."""

    model: str
    seed: int
    accuracy: float
    """Share of all test shapes that are right."""
    mean_class_accuracy: float
    parameters: int
    seconds: float
    """Training time, data included, validation and start-up not."""
    epochs: int
    shapes: int
    """Test shapes."""


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

    def save(self, folder: Path) -> None:
        """Write results.csv (a line per cell), table.md (a line per model) and results.json (everything)."""
        write_atomically(folder / "results.csv", self._write_csv)
        write_text(folder / "table.md", self.table("github") + "\n")
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
    from joblib import Parallel, delayed, parallel_config

    data_options, model_options = data_options or DataOptions(), model_options or ModelOptions()
    recipe, out = recipe or Recipe(), Path(out)
    _check_names(models, seeds)
    load_sets(data, data_options)  # builds what is missing once, before the workers start, and fails early
    jobs = [
        delayed(run_cell)(name, seed, str(data), data_options, model_options, recipe, out / "cells", threads)
        for seed in seeds
        for name in models
    ]
    workers = workers or max(1, (os.cpu_count() or 1) // threads)
    with parallel_config("loky", n_jobs=min(workers, len(jobs)), inner_max_num_threads=threads):
        results = Parallel(return_as="generator_unordered")(jobs)
        done = list(_watched(results, len(jobs), progress))
    order = {(name, seed): place for place, (name, seed) in enumerate((m, s) for m in models for s in seeds)}
    cells = sorted(done, key=lambda cell: order[cell.model, cell.seed])
    configuration = {
        "models": list(models),
        "seeds": list(seeds),
        "data": str(data),
        "data_options": data_options.as_dict(),
        "model_options": model_options.as_dict(),
        "recipe": recipe.as_dict(),
        "threads": threads,
    }
    comparison = Comparison(cells, configuration)
    comparison.save(out)
    return comparison


def run_cell(
    name: str,
    seed: int,
    data: str,
    data_options: DataOptions,
    model_options: ModelOptions,
    recipe: Recipe,
    folder: Path,
    threads: int,
) -> Cell:
    """Train and test one model with one seed in its own folder, or read the result that is there."""
    import torch

    torch.set_num_threads(threads)
    train, test = load_sets(data, data_options)
    model = create_model(name, classes=len(train.classes), seed=seed, **model_options.as_dict())
    run = folder / f"{name}-seed{seed}"
    fitted = fit(model, train, recipe, seed=seed, run=run, progress=False)
    result = run / "result.json"
    if not result.exists():
        evaluation = evaluate(fitted.model, test)
        cell = Cell(
            model=name,
            seed=seed,
            accuracy=evaluation.accuracy,
            mean_class_accuracy=evaluation.mean_class_accuracy,
            parameters=sum(parameter.numel() for parameter in model.parameters()),
            seconds=round(fitted.seconds, 1),
            epochs=len(fitted.history),
            shapes=len(test),
        )
        write_json(result, asdict(cell))
    return Cell(**read_json(result))


def load_sets(data: str | Path, options: DataOptions) -> tuple[PointSets, PointSets]:
    """The training and the test sets that the options describe."""
    return load_split(data, "train", options), load_split(data, "test", options)


def load_like(description: dict[str, Any], split: str, data: str | Path | None = None) -> PointSets:
    """Another split, or another data set, made into sets like those that `PointSets.describe` tells of."""
    sampler = description["sampler"]
    options = DataOptions(
        points=description["points"],
        pool_points=description["pool"],
        normalize=description["normalize"],
        sampler="uniform" if sampler == AS_RELEASED else sampler,
        data_seed=description["seed"],
        up=description["up"],
    )
    return load_split(data or description["source"], split, options)


def load_split(data: str | Path, split: str, options: DataOptions) -> PointSets:
    """One split of a card or folder under the options."""
    return load_dataset(
        data,
        split,
        options.points,
        pool_points=options.pool_points,
        normalize=options.normalize,
        sampler=options.sampler,
        seed=options.data_seed,
        up=options.up,
    )


def _check_names(models: Sequence[str], seeds: Sequence[int]) -> None:
    if not models or not seeds:
        raise PointsetError("a comparison needs at least one model and one seed")
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
