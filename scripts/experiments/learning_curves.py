"""Learning curves for a folder of one's own: accuracy against the number of training shapes of each class.

python scripts/experiments/learning_curves.py path/to/modelnet40_ply_hdf5 path/to/labeled_db

Every line of results/learning_curves/results.csv is one fit; the same command continues an interrupted run. At the end
it writes the table and the figure. ModelNet40 is tested on its official test set, labeled_db on
ten shapes of each class.
"""

import csv
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import cyclopts
import numpy as np
import torch
from saved import FOLDER, study_table
from torch import Tensor

from pointset.baselines.models import Baseline
from pointset.comparison.saving import commit_of, machine_of
from pointset.data.arrays import from_arrays
from pointset.data.dataset import load_dataset
from pointset.data.groups import assign_folds
from pointset.data.point_sets import PointSets
from pointset.evaluation import Evaluation, evaluate
from pointset.runs.atomic import write_for_user
from pointset.runs.provenance import origin
from pointset.runs.records import write_json, write_text
from pointset.training.baselines import FOLDS, baseline_of, extract_rows, fit_head, set_pose
from pointset.training.fine_tuning import STARTING_MODEL, transfer_recipe
from pointset.training.loop import fit
from pointset.viz.charts import label_axes, line_style, make_panels, with_legend
from pointset.zoo.models import create_model, create_pretrained
from pointset.zoo.transfer import start_from

RESULTS = FOLDER / "results" / "learning_curves"
SHAPES = {"labeled_db": (1, 2, 5, 10), "modelnet40": (1, 2, 5, 10, 20, 50)}
TITLES = {"labeled_db": "labeled_db, 19 classes", "modelnet40": "ModelNet40"}
DRAWS = {"labeled_db": (5, 2), "modelnet40": (1, 1)}
"""Draws of the training shapes for baselines, and for networks."""
TESTED = 10
"""Test shapes of each class of labeled_db."""
CLASSICAL = "features+surface-svm"
BASELINES = ("features-svm", CLASSICAL, "embedding-svm")
PRODUCTS = {f"scratch x {CLASSICAL}": ("scratch", CLASSICAL), "all": ("fine-tuned", CLASSICAL, "embedding-svm")}
"""Products of probabilities: without and with weights that were trained on ModelNet40."""
FEWEST_STEPS, EPOCHS = 900, 30
"""Of a training from the beginning."""
FIELDS = ("data", "draw", "shapes", "method", "accuracy", "mean_class_accuracy", "seconds")


def measure(name: str, folder: Path) -> None:
    """Fit and test what results.csv lacks for one dataset."""
    done = {tuple(line[:3]) for line in _lines()}
    draws = [(draw, shapes) for draw in range(DRAWS[name][0]) for shapes in SHAPES[name]]
    draws = [one for one in draws if (name, *map(str, one)) not in done]
    if not draws:
        return
    train, test = _load(name, folder)
    chosen = {one: _drawn(train.labels, *one) for one in draws}
    pool = torch.cat([rows for own in chosen.values() for rows in (own if test is None else own[:1])]).unique()
    every = train.subset(pool)
    blocks = {row: _rows(row, every) for row in BASELINES}
    tested = {row: _rows(row, test) for row in BASELINES} if test is not None else blocks
    for draw, shapes in draws:
        inside, outside = (torch.searchsorted(pool, rows) for rows in chosen[draw, shapes])
        held = every.subset(outside) if test is None else test
        outside = outside if test is None else torch.arange(len(test))
        sets = every.subset(inside)
        results: dict[str, tuple[Tensor, float]] = {}
        for row in BASELINES:
            own = [block[inside] for block in blocks[row]], [block[outside] for block in tested[row]]
            results[row] = _timed(partial(_fit_rows, row, sets, *own, draw))
        if draw < DRAWS[name][1]:
            for row in ("scratch", "fine-tuned"):
                results[row] = _timed(partial(_fit_network, row, sets, held, draw))
            for row, members in PRODUCTS.items():
                logits = torch.stack([results[member][0].log_softmax(dim=1) for member in members]).sum(dim=0)
                results[row] = logits, sum(results[member][1] for member in members)
        with (RESULTS / "results.csv").open("a", encoding="utf-8", newline="") as file:
            for row, (logits, seconds) in results.items():
                judged = Evaluation(logits.numpy(), held.labels.numpy(), held.classes)
                numbers = [f"{judged.accuracy:.4f}", f"{judged.mean_class_accuracy:.4f}", f"{seconds:.1f}"]
                csv.writer(file, lineterminator="\n").writerow([name, draw, shapes, row, *numbers])


def _load(name: str, folder: Path) -> tuple[PointSets, PointSets | None]:
    """The shapes to draw from, and those to test on; of labeled_db, which has no split, all and None."""
    options: dict[str, Any] = {"normalize": "center-standardize", "up": "z", "progress": False}
    train, test = (load_dataset(folder, split, 1024, **options) for split in ("train", "test"))
    if name == "modelnet40":
        return train, test
    X = np.concatenate([train.source_pool.points, test.source_pool.points])
    y = [train.classes[label] for label in torch.cat([train.labels, test.labels])]
    return from_arrays(X, y, train.classes, points=1024, normalize="center-standardize", up="z"), None


def _drawn(labels: Tensor, draw: int, shapes: int) -> tuple[Tensor, Tensor]:
    """Rows of so many training shapes of each class, and of test shapes; smaller draws lie in larger ones."""
    generator = np.random.default_rng(draw)
    chosen, tested = [], []
    for label in labels.unique():
        rows = generator.permutation(np.flatnonzero(labels == label))
        chosen.append(rows[:shapes])
        tested.append(rows[-TESTED:])
    return torch.from_numpy(np.concatenate(chosen)), torch.from_numpy(np.concatenate(tested))


def _rows(row: str, sets: PointSets) -> list[Tensor]:
    return extract_rows(_baseline(row, sets), sets, progress=False)


def _baseline(row: str, sets: PointSets) -> Baseline:
    baseline = baseline_of(create_model(row, classes=len(sets.classes)))
    assert baseline is not None
    set_pose(baseline, sets)
    return baseline


def _fit_rows(row: str, sets: PointSets, inside: list[Tensor], outside: list[Tensor], seed: int) -> Tensor:
    baseline = _baseline(row, sets)
    fit_head(baseline, inside, sets.labels, assign_folds(np.arange(len(sets)), sets.labels.tolist(), seed, FOLDS))
    return baseline.logits(outside)


def _fit_network(row: str, sets: PointSets, held: PointSets, seed: int) -> Tensor:
    if row == "scratch":
        options: dict[str, Any] = {"dim": 64, "head_dim": 256, "head_norm": "batch", "dropout": 0.3}
        network = create_model(
            STARTING_MODEL.partition(".")[0], classes=len(sets.classes), seed=seed, pooled_dropout=0.0, **options
        )
        recipe = transfer_recipe(sets, steps=max(FEWEST_STEPS, EPOCHS * len(sets) // 32))
    else:
        network = start_from(create_pretrained(STARTING_MODEL), sets, seed=seed, start=STARTING_MODEL)
        recipe = transfer_recipe(sets)
    model = fit(network, sets, recipe, seed=seed, progress=False).model
    return torch.from_numpy(evaluate(model, held).logits)


def _timed(work: Callable[[], Tensor]) -> tuple[Tensor, float]:
    began = time.process_time()
    return work().detach(), time.process_time() - began


def _lines() -> Iterator[list[str]]:
    with (RESULTS / "results.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file)


def means() -> dict[tuple[str, str], dict[int, tuple[float, float | None]]]:
    """For each dataset and method: by the number of shapes, mean accuracy over draws in percent, and deviation."""
    values: dict[tuple[str, str], dict[int, list[float]]] = {}
    for name, _, shapes, method, accuracy, *_ in list(_lines())[1:]:
        values.setdefault((name, method), {}).setdefault(int(shapes), []).append(100 * float(accuracy))
    return {
        key: {shapes: (fmean(own), stdev(own) if len(own) > 1 else None) for shapes, own in by_shapes.items()}
        for key, by_shapes in values.items()
    }


def table() -> str:
    """A Markdown table of each dataset, with a row for each method and a column for each number of shapes."""
    tables = []
    for name, sizes in SHAPES.items():
        lines = [
            [method, *(_cell(curve.get(size)) for size in sizes)]
            for (own, method), curve in means().items()
            if own == name
        ]
        heads = [f"{name}, accuracy %", *(f"{size} of each class" for size in sizes)]
        tables.append(study_table(lines, heads, form="pipe"))
    return "\n\n".join(tables)


def _cell(value: tuple[float, float | None] | None) -> str:
    if value is None:
        return ""
    mean, deviation = value
    return f"{mean:.1f}" if deviation is None else f"{mean:.1f} ± {deviation:.1f}"


def draw(file: Path) -> None:
    """Write the figure."""
    figure, panels = make_panels(len(SHAPES), 2, 2.9, sharey=True)
    methods = dict.fromkeys(method for _, method in means())
    styles = {method: line_style(index) for index, method in enumerate(methods)}
    for axes, (name, sizes) in zip(panels, SHAPES.items(), strict=True):
        for (own, method), curve in means().items():
            if own == name:
                axes.plot(list(curve), [mean for mean, _ in curve.values()], lw=1.2, **styles[method])
        axes.set_xscale("log")
        axes.set_xticks(sizes, map(str, sizes))
        axes.minorticks_off()
        axes.set_title(TITLES[name], fontsize=9, loc="left")
        label_axes(axes, "training shapes of each class", "accuracy %")
    with_legend(figure, styles).savefig(file, format="png", dpi=160)


def write() -> None:
    """Write the table and the figure, and where they come from."""
    write_text(RESULTS / "table.md", table() + "\n")
    write_for_user(RESULTS / "curves.png", draw)
    made = origin()
    about = {
        "title": "Learning curves for a folder of one's own",
        "data": "",
        "command": "python scripts/experiments/learning_curves.py path/to/modelnet40_ply_hdf5 path/to/labeled_db",
        "commit": commit_of(made),
        "machine": machine_of(made),
        "threads": 1,
        "rows": [],
        "date": datetime.now(UTC).date().isoformat(),
        "notes": [
            "ModelNet40: one draw. labeled_db: five draws for baselines, two for networks; mean ± standard deviation."
        ],
    }
    write_json(RESULTS / "about.json", about)


def curves(modelnet: Path, labeled: Path) -> None:
    """Measure the learning curves of both datasets, and write the table and the figure."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    if not (RESULTS / "results.csv").exists():
        (RESULTS / "results.csv").write_text(",".join(FIELDS) + "\n", encoding="utf-8")
    measure("labeled_db", labeled)
    measure("modelnet40", modelnet)
    write()


if __name__ == "__main__":
    cyclopts.run(curves)
