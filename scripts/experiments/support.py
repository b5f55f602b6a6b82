"""Measure accuracy and exact support of networks with local features that are trained from scratch on labeled_db.

python scripts/experiments/support.py path/to/labeled_db    # writes results/support/

A fifth of each class is held out for testing. Each line of results.csv is one fitted model, and the same command
continues an interrupted run.
"""

import time
from dataclasses import replace
from pathlib import Path

import cyclopts
import numpy as np
import pandas as pd
from frontiers import COLORS, MARKERS, draw_costs, save_picture
from matplotlib.figure import Figure
from saved import RESULTS, keep_row, kept_rows, study_table, write_tables

from pointset import ModelOptions, create_model, fit
from pointset.data import PointSets, from_arrays, load_dataset
from pointset.evaluation import evaluate
from pointset.explain import exact_support
from pointset.nn import AttentionOptions
from pointset.training import transfer_recipe
from pointset.viz import Dot

NAME, POINTS, HELD_OUT = "support", 1024, 0.2
OPTIONS = ModelOptions(
    dim=64,
    attention=AttentionOptions(norm="batch"),
    head_dim=256,
    head_norm="batch",
    dropout=0.3,
    pooled_dropout=0.0,
    local_features="upright",
)
SPARSE = {
    f"{name}, sparsemax at {temperature:g}": OPTIONS.changed({"pool_weights": "sparsemax", "temperature": temperature})
    for name in ("rff-pma", "rff-pma4")
    for temperature in (1.0, 0.3, 0.1)
}
WIDE = {
    f"{label}, width 128": replace(options, dim=128)
    for label, options in {"rff-max": OPTIONS, **SPARSE}.items()
    if label in ("rff-max", "rff-pma4, sparsemax at 1")
}
MODELS = {"rff-max": OPTIONS, **SPARSE, **WIDE, "isab16-pma": OPTIONS, "dumlp16-max+dumlp16": OPTIONS}
HEADS = ["model", "splits", "accuracy %", "support", "10 % to 90 %", "largest change", "CPU seconds"]


def load(folder: Path) -> PointSets:
    """Return the shapes of the training and the test split of the folder as one dataset."""
    splits = [load_dataset(folder, split, POINTS, up="z", progress=False) for split in ("train", "test")]
    X, y = (np.concatenate([getattr(one.point_cache, name) for one in splits]) for name in ("points", "labels"))
    return from_arrays(X, y, splits[0].classes, points=POINTS, normalize="center-standardize", up="z")


def measure(label: str, train: PointSets, test: PointSets, seed: int) -> None:
    """Fit one model, and write its accuracy and the size of the support of the test shapes to results.csv."""
    began, name = time.process_time(), label.partition(",")[0]
    network = create_model(name, classes=len(train.classes), options=MODELS[label], seed=seed)
    model = fit(network, train, transfer_recipe(train), seed=seed, progress=False).model
    seconds = time.process_time() - began
    accuracy = evaluate(model, test).accuracy
    supports = [exact_support(model, points) for points in test.with_local_features("upright").points]
    there = [support for support in supports if support is not None]
    counts = [POINTS if support is None else int(support.points.sum()) for support in supports]
    low, middle, high = np.quantile(counts, [0.1, 0.5, 0.9]).round().astype(int) if there else ("", "", "")
    change = f"{max(support.change for support in there):.1e}" if there else ""
    row = {"model": label, "seed": seed, "shapes": len(test), "without": len(test) - len(there)}
    row |= {"accuracy": f"{accuracy:.4f}", "support": middle, "low": low, "high": high, "change": change}
    keep_row(NAME, {**row, "cpu_seconds": f"{seconds:.1f}"})


def means() -> pd.DataFrame:
    """Return the means over the splits for each model, the number of splits, and the largest change of a logit."""
    groups = pd.read_csv(RESULTS / NAME / "results.csv").groupby("model", sort=False)
    return groups.mean().assign(splits=groups.size(), change=groups["change"].max())


def table() -> str:
    """Return the table, with a line for each model."""
    lines = []
    for label, own in means().iterrows():
        cells = [f"{own.support:.0f}", f"{own.low:.0f} to {own.high:.0f}", f"{own.change:.1e}"]
        cells = ["all", "", ""] if np.isnan(own.support) else cells
        lines.append([label, f"{own.splits:.0f}", f"{100 * own.accuracy:.1f}", *cells, f"{own.cpu_seconds:.0f}"])
    return study_table(lines, HEADS)


def draw(file: Path) -> None:
    """Draw accuracy against the number of support points, for models that were measured on all splits."""
    found, dots = means(), []
    for index, (label, own) in enumerate(found[found.splits == found.splits.max()].iterrows()):
        accuracy, style = 100 * own.accuracy, {"color": COLORS[index], "marker": MARKERS[index]}
        size = POINTS if np.isnan(own.support) else own.support
        dots.append(Dot(str(label), size, accuracy, accuracy, accuracy, style))
    figure = Figure((7.2, 4.0), layout="constrained")
    draw_costs(figure.subplots(), dots, f"median number of points of the support, of {POINTS:,}", "accuracy %")
    save_picture(figure, {dot.name: {**dot.style, "ls": ""} for dot in dots}, file)


def support(data: Path, *, seeds: tuple[int, ...] = (0, 1, 2)) -> None:
    """Measure the models that results.csv does not have yet, and write the table and the figure.

    Each seed is one random split.
    """
    sets = load(data)
    for seed in seeds:
        train, test = sets.split_validation(HELD_OUT, seed)
        for label in MODELS:
            if (label, str(seed)) not in {(row["model"], row["seed"]) for row in kept_rows(NAME)}:
                measure(label, train, test, seed)
    write_tables(NAME, [table()])
    draw(RESULTS / NAME / "support.png")


if __name__ == "__main__":
    cyclopts.run(support)
