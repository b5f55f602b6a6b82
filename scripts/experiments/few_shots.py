"""Few shots of ModelNet40: 5 or 10 classes, 10 or 20 training shapes of each, 20 test shapes of each, ten episodes.

python scripts/experiments/few_shots.py path/to/modelnet40_ply_hdf5    # writes results/few_shots/

Shots are of the training split and queries of the test split, as Point-BERT draws them (arXiv 2111.14819). Episode s is
drawn with seed s: 5 classes are the first of 10, and 10 shots the first of 20. The same command continues a run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import cyclopts
import numpy as np
import torch
from saved import keep_row, kept_rows, study_table, write_tables
from support import OPTIONS
from torch import Tensor

from pointset.baselines.heads import SupportVectors
from pointset.data.dataset import load_dataset
from pointset.data.point_sets import PointSets
from pointset.training.automatic import RECIPE, transfer_recipe
from pointset.training.baselines import baseline_of, extract_rows, set_pose
from pointset.training.loop import fit
from pointset.zoo.models import create_model
from pointset.zoo.predicting import embed_rows, predict

NAME, CLASSICAL, NETWORK = "few_shots", "features+surface-svm", "dumlp16-max+dumlp16"
SIZES, QUERIES, EPISODES = ((5, 10), (5, 20), (10, 10), (10, 20)), 20, 10
"""Ways and shots."""
STEPS = 100
"""Of a network from the beginning, for each episode."""
LONGER: dict[str, Any] = {"epochs": 20, "batch_size": 64, "train_points": (64, 320), "label_smoothing": 0.2}
"""The training on the other classes, which also mixes shapes (PointCutMix) and has more noise."""
SCRATCH = f"network, {STEPS} steps from scratch"
ROWS = "SVM on rows of a network of the other 30"
METHODS = ((CLASSICAL, "all 40"), (SCRATCH, "all 40"), (CLASSICAL, "10 unseen"), (ROWS, "10 unseen"))
"""Methods, and the classes that episodes are drawn from; the 10 are the last of a permutation with seed 0."""
PUBLISHED = ["NPNet, training-free, published", "all 40", "92.0", "93.2", "82.5", "87.6"]
Where = tuple[Tensor, Tensor]
"""Indices of shots in the training split, and of queries in the test split."""
Episode = tuple[int, int, int, list[int], Where]
Extractor = Callable[[PointSets], list[Tensor]]


def episodes(train: PointSets, test: PointSets, classes: np.ndarray) -> Iterator[Episode]:
    """Ways, shots, seed, classes and shapes of every episode."""
    for seed in range(EPISODES):
        rng = np.random.default_rng(seed)
        chosen = rng.permutation(classes)[:10].tolist()
        shots = [rng.permutation(np.flatnonzero(train.labels == label)) for label in chosen]
        queries = [rng.permutation(np.flatnonzero(test.labels == label))[:QUERIES] for label in chosen]
        for ways, count in SIZES:
            inside = np.concatenate([rows[:count] for rows in shots[:ways]])
            outside = np.concatenate(queries[:ways])
            yield ways, count, seed, chosen[:ways], (torch.from_numpy(inside), torch.from_numpy(outside))


def rows_of(extract: Extractor, sets: PointSets, needed: Sequence[Tensor]) -> list[Tensor]:
    """Blocks [N, width] of rows, filled for the shapes that are needed."""
    indices = torch.cat([*needed]).unique()
    blocks = [block.flatten(1) for block in extract(sets.subset(indices))]
    return [block.new_zeros(len(sets), block.shape[1]).index_copy(0, indices, block) for block in blocks]


def classify_rows(blocks: Sequence[list[Tensor]], labels: Tensor, where: Where) -> Tensor:
    """Classes of the queries by a support vector machine on rows."""
    head = SupportVectors(int(labels.max()) + 1)
    shots, queries = (torch.cat(side, dim=1)[rows] for side, rows in zip(blocks, where, strict=True))
    head.fit(shots, labels[where[0]], [block.shape[1] for block in blocks[0]])
    return head(queries).argmax(dim=1)


def fit_and_classify(train: PointSets, test: PointSets, classes: list[int], where: Where) -> Tensor:
    """Classes of the queries, among those of the episode, by a network that is trained on the shots alone."""
    shots, chosen = train.subset(where[0]), torch.tensor(classes)
    network = create_model(NETWORK, classes=len(train.classes), options=OPTIONS)
    model = fit(network, shots, transfer_recipe(shots, steps=STEPS), progress=False).model
    return chosen[predict(model, test.subset(where[1])).logits[:, chosen].argmax(dim=1)]


def extractor(method: str, train: PointSets, unseen: np.ndarray, run: Path) -> Extractor:
    """What gives the blocks of rows of a method; the network is trained first."""
    if method == CLASSICAL:
        baseline = baseline_of(create_model(CLASSICAL, classes=2))
        assert baseline is not None
        set_pose(baseline, train)
        return partial(extract_rows, baseline, progress=True)
    others = torch.from_numpy(np.flatnonzero(~np.isin(train.labels.numpy(), unseen)))
    network = create_model(NETWORK, classes=len(train.classes), options=replace(OPTIONS, neighbourhood_noise=0.15))
    recipe = replace(RECIPE, **LONGER, augment=(*RECIPE.augment, "cutmix-k"))
    model = fit(network, train.subset(others), recipe, run=run).model
    return lambda sets: [embed_rows(model, sets)]


def measure(method: str, drawn_from: str, train: PointSets, test: PointSets, run: Path) -> None:
    """Run the episodes that results.csv lacks for one method."""
    mixed, done = np.random.default_rng(0).permutation(40), {tuple(row.values())[:5] for row in kept_rows(NAME)}
    drawn = episodes(train, test, mixed[-10:] if drawn_from == "10 unseen" else np.arange(40))
    todo = [one for one in drawn if (method, drawn_from, *map(str, one[:3])) not in done]
    if todo and method != SCRATCH:
        extract, both = extractor(method, train, mixed[-10:], run), zip(*(one[4] for one in todo), strict=True)
        blocks = [rows_of(extract, sets, needed) for sets, needed in zip((train, test), both, strict=True)]
    for ways, shots, seed, classes, where in todo:
        fitted = fit_and_classify(train, test, classes, where) if method == SCRATCH else None
        found = classify_rows(blocks, train.labels, where) if fitted is None else fitted
        accuracy = float((found == test.labels[where[1]]).float().mean())
        named = {"method": method, "classes": drawn_from, "ways": ways, "shots": shots, "seed": seed}
        keep_row(NAME, {**named, "accuracy": f"{accuracy:.4f}"})


def table() -> str:
    """Mean accuracy and standard deviation over the episodes."""
    found: dict[tuple[str, ...], list[float]] = {}
    for *key, _, accuracy in (row.values() for row in kept_rows(NAME)):
        found.setdefault(tuple(key), []).append(100 * float(accuracy))
    cells = [[found.get((*method, *map(str, size)), []) for size in SIZES] for method in METHODS]
    texts = [[f"{fmean(own):.1f} ± {stdev(own):.1f}" if len(own) == EPISODES else "" for own in line] for line in cells]
    lines = [[*method, *line] for method, line in zip(METHODS, texts, strict=True)]
    heads = ["accuracy %", "classes", *(f"{ways} ways {shots} shots" for ways, shots in SIZES)]
    return study_table([PUBLISHED, *lines], heads, left=2)


def few_shots(data: str, *, run: Path = Path("runs/few_shots")) -> None:
    """Run all episodes, and write the table; `run` keeps the network of the 30 classes."""
    options: dict[str, Any] = {"normalize": "center-standardize", "progress": False}
    train, test = (load_dataset(data, split, 1024, **options) for split in ("train", "test"))
    for method, drawn_from in METHODS:
        measure(method, drawn_from, train, test, run)
    write_tables(NAME, [table()])


if __name__ == "__main__":
    cyclopts.run(few_shots)
