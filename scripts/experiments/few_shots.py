"""Few-shot classification on ModelNet40: ten episodes with 5 or 10 classes and 10 or 20 training shapes per class.

python scripts/experiments/few_shots.py path/to/modelnet40_ply_hdf5    # writes results/few_shots/

Shots (training shapes) are from the training split and queries (test shapes) from the test split, as in Point-BERT
(arXiv 2111.14819). Episode s is sampled with seed s: episodes with 5 classes have the first 5 of 10 classes, and
episodes with 10 shots the first 10 of 20 shots. The same command continues an interrupted run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import cyclopts
import numpy as np
import pandas as pd
import torch
from saved import RESULTS, keep_row, kept_rows, study_table, write_tables
from support import OPTIONS
from torch import Tensor

from pointset import create_model, evaluate, fit
from pointset.data import PointSets, load_dataset
from pointset.evaluation import embed
from pointset.training import transfer_recipe

NAME, CLASSICAL, NETWORK = "few_shots", "features+surface-svm", "dumlp16-max+dumlp16"
BLOCKS = ("features-svm", "surface-svm")
SIZES, QUERIES, EPISODES = ((5, 10), (5, 20), (10, 10), (10, 20)), 20, 10
"""Pairs of ways (classes per episode) and shots (training shapes per class); queries per class; number of episodes."""
MIXED = ("stretch-wide", "shift-wide", "jitter", "cutmix-k")
"""Augmentations of the training on the 30 other classes, with PointCutMix."""
STEPS = 100
SCRATCH, ROWS = f"network, {STEPS} steps from scratch", "SVM on embeddings, other 30 classes"
BOTH = "SVM on features, surface and embeddings"
METHODS = ((CLASSICAL, "all 40"), (SCRATCH, "all 40"), *((name, "10 unseen") for name in (CLASSICAL, ROWS, BOTH)))
"""Methods, and the classes from which episodes are sampled. The 10 unseen classes are the last of a permutation with
seed 0."""
FIELDS = ("method", "classes", "ways", "shots", "seed", "accuracy")
PUBLISHED = ["NPNet, training-free, published", "all 40", "92.0", "93.2", "82.5", "87.6"]
Where = tuple[Tensor, Tensor]
"""Indices of shots in the training split, and of queries in the test split."""
Extractor = Callable[[PointSets], list[Tensor]]


def episodes(train: PointSets, test: PointSets, classes: np.ndarray) -> Iterator[tuple[Any, ...]]:
    """Yield ways, shots, seed, classes and `Where` of every episode."""
    for seed in range(EPISODES):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(classes)[:10].tolist()
        shots = [rng.permutation(np.flatnonzero(train.labels == label)) for label in chosen]
        queries = [rng.permutation(np.flatnonzero(test.labels == label))[:QUERIES] for label in chosen]
        for ways, count in SIZES:
            where = np.concatenate([rows[:count] for rows in shots[:ways]]), np.concatenate(queries[:ways])
            yield ways, count, seed, chosen[:ways], tuple(map(torch.from_numpy, where))


def rows_of(extract: Extractor, sets: PointSets, needed: Sequence[Tensor]) -> list[Tensor]:
    """Return blocks [N, width] of feature vectors, which are 0 for shapes that are not needed."""
    indices = torch.cat([*needed]).unique()
    blocks = extract(sets.subset(indices))
    return [block.new_zeros(len(sets), block.shape[1]).index_copy(0, indices, block) for block in blocks]


def classify_rows(blocks: Sequence[list[Tensor]], labels: Tensor, where: Where) -> Tensor:
    """Return the classes of the queries that a support vector machine on feature vectors predicts."""
    shots, queries = (torch.cat(side, dim=1)[rows] for side, rows in zip(blocks, where, strict=True))
    baseline: Any = create_model(CLASSICAL, classes=int(labels.max()) + 1).model
    head = baseline.head
    head.fit(shots, labels[where[0]], [block.shape[1] for block in blocks[0]])
    return head(queries).argmax(dim=1)


def fit_and_classify(train: PointSets, test: PointSets, classes: list[int], where: Where) -> Tensor:
    """Return the classes of the queries that a network predicts. It is trained on the shots of the episode alone."""
    shots, chosen = train.subset(where[0]), torch.tensor(classes)
    network = create_model(NETWORK, classes=len(train.classes), options=OPTIONS)
    model = fit(network, shots, transfer_recipe(shots, steps=STEPS), progress=False).model
    return chosen[evaluate(model, test.subset(where[1])).logits[:, classes].argmax(axis=1)]


def extractor(method: str, train: PointSets, unseen: np.ndarray, run: Path) -> Extractor:
    """Return the function that computes the blocks of feature vectors of a method, after training its network."""
    if method == BOTH:
        parts = [extractor(name, train, unseen, run) for name in (CLASSICAL, ROWS)]
        return lambda sets: [block for part in parts for block in part(sets)]
    if method == CLASSICAL:  # each baseline gives one block; a few shapes of every class set its upward axis
        few = train.subset([row for label in range(40) for row in np.flatnonzero(train.labels == label)[:2]])
        baselines = [fit(create_model(name, train.classes), few, progress=False).model for name in BLOCKS]
        return lambda sets: [torch.from_numpy(embed(baseline, sets)) for baseline in baselines]
    others = torch.from_numpy(np.flatnonzero(~np.isin(train.labels.numpy(), unseen)))
    network = create_model(NETWORK, classes=len(train.classes), options=replace(OPTIONS, local_feature_noise=0.15))
    longer: dict[str, Any] = {"epochs": 20, "batch_size": 64, "train_points": (64, 320), "label_smoothing": 0.2}
    model = fit(network, train.subset(others), transfer_recipe(train, augment=MIXED, **longer), run=run).model
    return lambda sets: [torch.from_numpy(embed(model, sets))]


def measure(method: str, drawn_from: str, train: PointSets, test: PointSets, run: Path) -> None:
    """Run the episodes of one method that results.csv does not have yet."""
    mixed, done = np.random.default_rng(0).permutation(40), {tuple(row.values())[:5] for row in kept_rows(NAME)}
    drawn = episodes(train, test, mixed[-10:] if drawn_from == "10 unseen" else np.arange(40))
    todo = [one for one in drawn if (method, drawn_from, *map(str, one[:3])) not in done]
    if todo and method != SCRATCH:
        extract, both = extractor(method, train, mixed[-10:], run), zip(*(one[4] for one in todo), strict=True)
        blocks = [rows_of(extract, sets, needed) for sets, needed in zip((train, test), both, strict=True)]
    for *size, seed, classes, where in todo:
        fitted = fit_and_classify(train, test, classes, where) if method == SCRATCH else None
        found = classify_rows(blocks, train.labels, where) if fitted is None else fitted
        accuracy = float((found == test.labels[where[1]]).float().mean())
        keep_row(NAME, dict(zip(FIELDS, [method, drawn_from, *size, seed, f"{accuracy:.4f}"], strict=True)))


def table() -> str:
    """Return the table of mean accuracies and standard deviations over the episodes."""
    rows = pd.read_csv(RESULTS / NAME / "results.csv")
    found = (100 * rows.accuracy).groupby([rows[field] for field in FIELDS[:4]]).agg([fmean, "std"])
    cells = {key: f"{mean:.1f} ± {deviation:.1f}" for key, mean, deviation in found.itertuples()}
    lines = [[*method, *(cells.get((*method, *size), "open") for size in SIZES)] for method in METHODS]
    heads = ["accuracy %", "classes", *(f"{ways} ways {shots} shots" for ways, shots in SIZES)]
    return study_table([PUBLISHED, *lines], heads, left=2)


def few_shots(data: str, *, run: Path = Path("runs/few_shots")) -> None:
    """Run all episodes, and write the table. `run` is the folder for the network of the 30 classes."""
    options: dict[str, Any] = {"normalize": "center-standardize", "progress": False}
    train, test = (load_dataset(data, split, 1024, **options) for split in ("train", "test"))
    for method, drawn_from in METHODS:
        measure(method, drawn_from, train, test, run)
    write_tables(NAME, [table()])


if __name__ == "__main__":
    cyclopts.run(few_shots)
