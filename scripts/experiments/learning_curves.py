"""Learning curves for a folder of one's own: accuracy against the number of training shapes of each class.

python scripts/experiments/learning_curves.py path/to/modelnet40_ply_hdf5 path/to/labeled_db

Every line of results/learning_curves/results.csv is one fit; the same command continues an interrupted run. At the end it
writes the table and the figure. ModelNet40 is tested on its official test set, labeled_db on ten shapes of each class.
"""

import csv
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import cyclopts
import numpy as np
import torch
from saved import FOLDER
from torch import Tensor

from pointset.baselines.folds import assign_folds
from pointset.data.arrays import from_arrays
from pointset.data.dataset import load_dataset
from pointset.data.point_sets import PointSets
from pointset.evaluation import Evaluation, evaluate
from pointset.training.automatic import START, transfer_recipe
from pointset.training.baselines import FOLDS, baseline_of, extract_rows, fit_head, held_out_logits, set_pose
from pointset.training.loop import fit
from pointset.zoo.models import create_model, create_pretrained
from pointset.zoo.transfer import start_from

RESULTS = FOLDER / "results" / "learning_curves"
SHAPES = {"labeled_db": (1, 2, 5, 10), "modelnet40": (1, 2, 5, 10, 20, 50)}
DRAWS = {"labeled_db": 3, "modelnet40": 2}
TESTED = 10
"""Test shapes of each class of labeled_db."""
BASELINES = ("features-svm", "embedding-svm")
PRODUCTS = {"scratch x features-svm": ("scratch", "features-svm"), "all": ("fine-tuned", *BASELINES)}
"""Products of probabilities: without and with weights that were trained on ModelNet40."""
FEWEST_STEPS, EPOCHS = 900, 40
"""Of a training from the beginning."""
FIELDS = ("data", "draw", "shapes", "method", "accuracy", "mean_class_accuracy", "seconds")


def measure(name: str, folder: Path) -> None:
    """Fit and test what results.csv lacks for one dataset."""
    train, test = _load(name, folder)
    blocks = {row: (_rows(row, train), _rows(row, test)) for row in BASELINES}
    for draw in range(DRAWS[name]):
        for shapes in SHAPES[name]:
            if any(line[:3] == [name, str(draw), str(shapes)] for line in _lines()):
                continue
            chosen, tested = _drawn(train.labels, shapes, draw, name)
            sets = train.subset(chosen)
            held = test if name == "modelnet40" else train.subset(tested)
            results: dict[str, tuple[Tensor, float]] = {}
            for row in BASELINES:
                inside, outside = blocks[row]
                outside = outside if name == "modelnet40" else [block[tested] for block in inside]
                results[row] = _timed(lambda: _fit_rows(row, sets, [block[chosen] for block in inside], outside, draw))
            for row, network in {"scratch": _new, "fine-tuned": _trained}.items():
                results[row] = _timed(lambda: _fit_network(row, network(sets, draw), sets, held, draw))
            for row, members in PRODUCTS.items():
                parts = [results[member] for member in members]
                logits = torch.stack([part[0].log_softmax(dim=1) for part in parts]).sum(dim=0)
                results[row] = logits, sum(part[1] for part in parts)
            with (RESULTS / "results.csv").open("a", encoding="utf-8", newline="") as file:
                for row, (logits, seconds) in results.items():
                    judged = Evaluation(logits.numpy(), held.labels.numpy(), held.classes)
                    numbers = [f"{judged.accuracy:.4f}", f"{judged.mean_class_accuracy:.4f}", f"{seconds:.1f}"]
                    csv.writer(file, lineterminator="\n").writerow([name, draw, shapes, row, *numbers])


def _load(name: str, folder: Path) -> tuple[PointSets, PointSets]:
    """The shapes to draw from, and those to test on; the same for labeled_db, which has no split."""
    options = {"normalize": "center-standardize", "up": "z", "progress": False}
    train, test = (load_dataset(folder, split, 1024, **options) for split in ("train", "test"))
    if name == "modelnet40":
        return train, test
    X = np.concatenate([train.pool, test.pool])
    labels = torch.cat([train.labels, test.labels])
    y = [train.classes[label] for label in labels]
    every = from_arrays(X, y, train.classes, points=1024, normalize="center-standardize", up="z")
    return every, every


def _drawn(labels: Tensor, shapes: int, draw: int, name: str) -> tuple[Tensor, Tensor]:
    """Rows of so many training shapes of each class, and of the test shapes of labeled_db; smaller draws are nested."""
    generator = np.random.default_rng(draw)
    chosen, tested = [], []
    for label in labels.unique():
        rows = generator.permutation(np.flatnonzero(labels == label))
        chosen.append(rows[:shapes])
        tested.append(rows[-TESTED:])
    return torch.from_numpy(np.concatenate(chosen)), torch.from_numpy(np.concatenate(tested))


def _rows(row: str, sets: PointSets) -> list[Tensor]:
    return extract_rows(_baseline(row, sets), sets, progress=False)


def _baseline(row: str, sets: PointSets):  # noqa: ANN202
    baseline = baseline_of(create_model(row, classes=len(sets.classes)))
    assert baseline is not None
    set_pose(baseline, sets)
    return baseline


def _fit_rows(row: str, sets: PointSets, inside: list[Tensor], outside: list[Tensor], seed: int) -> Tensor:
    baseline = _baseline(row, sets)
    folds = assign_folds(sets.names, sets.labels.tolist(), FOLDS, seed)
    fit_head(baseline, inside, sets.labels, held_out_logits(baseline, inside, sets.labels, folds, FOLDS))
    return baseline.logits(outside)


def _new(sets: PointSets, seed: int) -> torch.nn.Module:
    options = {"dim": 64, "head_dim": 256, "head_norm": "batch", "dropout": 0.3, "pooled_dropout": 0.0}
    return create_model(START.partition(".")[0], classes=len(sets.classes), seed=seed, **options)


def _trained(sets: PointSets, seed: int) -> torch.nn.Module:
    return start_from(create_pretrained(START), sets.classes, seed=seed, start=START)


def _fit_network(row: str, network: torch.nn.Module, sets: PointSets, held: PointSets, seed: int) -> Tensor:
    steps = max(FEWEST_STEPS, EPOCHS * len(sets) // 32) if row == "scratch" else None
    model = fit(network, sets, transfer_recipe(sets, steps), seed=seed, progress=False).model
    return torch.from_numpy(evaluate(model, held).logits)


def _timed(work: Callable[[], Tensor]) -> tuple[Tensor, float]:
    began = time.process_time()
    result = work()
    return result.detach(), time.process_time() - began


def _lines() -> Iterator[list[str]]:
    with (RESULTS / "results.csv").open(encoding="utf-8", newline="") as file:
        yield from csv.reader(file)


def curves(modelnet: Path, labeled: Path) -> None:
    """Measure the learning curves of both datasets."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    if not (RESULTS / "results.csv").exists():
        (RESULTS / "results.csv").write_text(",".join(FIELDS) + "\n", encoding="utf-8")
    measure("labeled_db", labeled)
    measure("modelnet40", modelnet)


if __name__ == "__main__":
    cyclopts.run(curves)
