"""Accuracy under corruptions, and on sets with fewer points than the training sets.

Corruptions are defined for clouds in the unit sphere (mean at the origin, farthest point at distance 1), y up.
`corrupted_sets` moves each fixed set of a dataset (the points of a shape in evaluation) to the unit sphere, corrupts
it, moves it back, and normalises it as the dataset's options say.
"""

import copy
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import numpy as np
import torch
from torch import Tensor, nn

from pointset.data.dataset import PointSets
from pointset.data.point_cache import PointCache
from pointset.data.sampling import seed_for
from pointset.errors import PointsetError
from pointset.evaluation.corruptions import MODELNET40_C, SEVERITIES, corrupt_clouds, find_corruption
from pointset.evaluation.predictions import evaluate
from pointset.runs import records
from pointset.runs.workers import torch_threads

ROBUSTNESS = "robustness.json"
"""File with the robustness of a comparison's run, in the run's folder."""
TESTED_SIZES = (16, 32, 64, 128, 256, 512, 1000)


@dataclass(frozen=True)
class Robustness:
    """Errors of one model under corruptions: shares of shapes that are classified incorrectly, from 0 to 1."""

    clean_error: float
    """Error without corruption."""
    errors: dict[str, dict[int, float]]
    """Error by corruption and severity."""
    seed: int
    """Seed of the corruptions. With the same seed, all models get the same clouds."""
    by_size: dict[int, float] = field(default_factory=dict)
    """Accuracy by number of points of the test sets; empty if not measured."""

    @property
    def corruption_errors(self) -> dict[str, float]:
        """Mean error over severities, by corruption."""
        return {name: float(np.mean(list(by_severity.values()))) for name, by_severity in self.errors.items()}

    @property
    def mean_error(self) -> float:
        """Mean error over severities and the corruptions in `errors`: ER_cor of ModelNet40-C."""
        return float(np.mean(list(self.corruption_errors.values())))

    def mean_corruption_error(self, baseline: "Robustness") -> float:
        """Return mCE, the mean over corruptions of (error / error of the baseline). Values below 1 are better.

        CE_c = sum_s E_(s,c) / sum_s E_(s,c)(baseline) (Hendrycks and Dietterich, arXiv 1903.12261, section 3; their
        baseline is AlexNet, and their values are in per cent).

        Raises:
            PointsetError: if model and baseline have different corruptions, severities or seeds; if the baseline has no
                error under a corruption.
        """
        mine, theirs = ({name: [*by] for name, by in which.errors.items()} for which in (self, baseline))
        if mine != theirs or self.seed != baseline.seed:
            raise PointsetError("the baseline was measured on other corruptions, severities or seed: use the same")
        own, other = self.corruption_errors, baseline.corruption_errors
        if not all(other.values()):
            raise PointsetError("the baseline makes no error under some corruption: use a weaker baseline")
        return float(np.mean([own[name] / other[name] for name in own]))


def robustness(
    model: nn.Module,
    data: PointSets,
    names: Sequence[str] = MODELNET40_C,
    severities: Sequence[int] = SEVERITIES,
    *,
    seed: int = 0,
    batch_size: int = 64,
) -> Robustness:
    """Measure the errors of a classifier on all shapes, under each corruption at each severity.

    Args:
        model: see `evaluate`.
        data: clouds without corruption, usually a test set.
        names: names of corruptions; see `list_corruptions`.
        severities: numbers from 1 to 5.
        seed: seed of the corruptions.
        batch_size: shapes per forward pass.

    Returns:
        The errors under each corruption at each severity, and without corruption.

    Raises:
        PointsetError: if a corruption or severity is unknown. It is raised before anything is computed.

    Example:
        >>> result = pointset.evaluation.robustness(model, test, names=["rotation", "gaussian"], severities=[1, 5])
        >>> sorted(result.errors), list(result.errors["rotation"])
        (['gaussian', 'rotation'], [1, 5])
    """
    for name, severity in itertools.product(names, severities):
        find_corruption(name, severity)
    clean = evaluate(model, data, batch_size=batch_size)

    def error(name: str, severity: int) -> float:
        return 1 - evaluate(model, corrupted_sets(data, name, severity, seed=seed), batch_size=batch_size).accuracy

    errors = {name: {severity: error(name, severity) for severity in severities} for name in names}
    return Robustness(1 - clean.accuracy, errors, seed)


def corrupted_sets(data: PointSets, name: str, severity: int, *, seed: int = 0) -> PointSets:
    """Return the fixed sets of a dataset under one corruption, as a dataset.

    The corruption `density_inc` returns half of its input points. Its input has twice the dataset's number of points if
    the point cache has that many for every shape. Otherwise, corrupted sets have half the dataset's number of points.

    Args:
        data: dataset whose fixed sets are corrupted.
        name: one of `list_corruptions()`.
        severity: a number from 1 to 5.
        seed: seed of the corruption. The result also depends on the order of the shapes.

    Returns:
        A dataset with one corrupted set for each set, and the same labels and names.

    Raises:
        PointsetError: if the corruption or severity is unknown; if the points have features, because corruptions are
            defined for coordinates alone.
    """
    corruption, level = find_corruption(name, severity)
    if data.options.features:
        raise PointsetError(
            f"{data.name or 'the data'} has {', '.join(data.options.features)}, and corruptions are defined for "
            "coordinates alone: load it without features"
        )
    generator = torch.Generator().manual_seed(seed_for(seed, f"{name}/{severity}"))
    source = copy.copy(data)
    source.options = replace(data.options, points=corruption.points_needed * data.size)
    source = source if (source.sizes == source.options.points).all() else data
    corrupted: list[Tensor] = [torch.empty(0, 3)] * len(source)
    sizes = source.sizes
    with torch_threads(1):
        for size in np.unique(sizes):
            for rows in torch.from_numpy(np.flatnonzero(sizes == size)).split(_TOGETHER):
                changed = corrupt_clouds(source.points[rows, :size], source.up, corruption, level, generator)
                for row, cloud in zip(rows.tolist(), changed, strict=True):
                    corrupted[row] = cloud
    return _as_sets(corrupted, data, max(len(cloud) for cloud in corrupted), seed)


def accuracy_by_size(
    model: nn.Module, data: PointSets, sizes: Sequence[int] = TESTED_SIZES, *, seed: int = 0, batch_size: int = 64
) -> dict[int, float]:
    """Measure the accuracy on random subsets of the fixed sets. Smaller subsets are contained in larger ones.

    Args:
        model: see `evaluate`.
        data: usually a test set.
        sizes: numbers of points to keep; numbers above the largest set size are skipped. Sets with fewer points are
            used whole.
        seed: seed of the subsets.
        batch_size: shapes per forward pass.

    Returns:
        Accuracy by size, in the order of the sizes.

    Raises:
        PointsetError: if a size is below 1.
    """
    clouds = [cloud[:size] for cloud, size in zip(data.points, data.sizes, strict=True)]
    # With the data's own seed, the subsets would depend on the random order that selected the sets.
    mixed = seed_for(seed, "accuracy by size")
    return {
        size: evaluate(model, _as_sets(clouds, data, size, mixed), batch_size=batch_size).accuracy
        for size in sizes
        if size <= data.sizes.max(initial=0)
    }


_TOGETHER = 8
"""Number of clouds corrupted at once. Random numbers are drawn in blocks of this size, so they do not depend on a
model's batch size, and the largest intermediate results of so few clouds fit into the processor's cache."""


def _as_sets(clouds: Sequence[Tensor], data: PointSets, size: int, seed: int) -> PointSets:
    """Return the dataset with other clouds [n_i, d], in sets of at most `size` points."""
    rows, normals = torch.cat(list(clouds)).numpy(), data.options.has_normals
    arrays = {"normals": rows[:, 3:6]} if normals else {}
    arrays |= {"features": rows[:, 3 + 3 * normals :]} if data.options.further else {}
    labels, offsets = data.labels.numpy(), np.cumsum([0, *map(len, clouds)])
    cache = PointCache(rows[:, :3], data.names, labels, list(data.classes), offsets=offsets, arrays=arrays)
    options = replace(data.options, points=size, data_seed=seed)
    return PointSets(cache, options, name=data.name, source=data.source, split=data.split)


def write_robustness(folder: Path, model: nn.Module, test: PointSets) -> None:
    """Test a model on corrupted and on smaller sets, and save the results."""
    points = test.options.points
    sizes = sorted({*(size for size in TESTED_SIZES if size < points), points})
    tested = robustness(model, test, [*MODELNET40_C, "drop_global", "drop_local"])
    records.write_json(folder / ROBUSTNESS, asdict(replace(tested, by_size=accuracy_by_size(model, test, sizes))))


def robustness_of(folders: Mapping[int, Path]) -> dict[int, Robustness]:
    """Return the saved results on corrupted and smaller test sets, for each seed that has such results."""
    files = {seed: folder / ROBUSTNESS for seed, folder in folders.items() if (folder / ROBUSTNESS).exists()}
    remedy = "delete {} and run the same command again to test the model again"

    def parse(content: bytes) -> Robustness:
        return msgspec.convert(json.loads(content), Robustness, strict=False)  # keys of JSON are strings

    return {
        seed: records.parse(file, parse, "the robustness of a model", remedy.format(file))
        for seed, file in files.items()
    }


def robustness_table(models: Mapping[str, Mapping[Any, Robustness]]) -> list[dict[str, Any]]:
    """Tabulate errors under corruptions, with means over the tested seeds of each model.

    Args:
        models: for each model's label, the results of the model by seed.

    Returns:
        A row for each tested model: "model", "clean error %", "mean error %", "mCE %" (relative to the first model,
        over the seeds that both models have; empty if undefined), "accuracy % at n" for smaller sets, and "seeds".

    Example:
        >>> result = pointset.evaluation.robustness(model, test, names=["rotation"], severities=[1])
        >>> [*pointset.evaluation.robustness_table({"isab4-pma": {0: result}})[0]]
        ['model', 'clean error %', 'mean error %', 'mCE %', 'seeds']
    """
    tested = {label: by_seed for label, by_seed in models.items() if by_seed}
    baseline = next(iter(tested.values()), {})
    table = []
    for label, by_seed in tested.items():
        runs = list(by_seed.values())
        relative = [
            own.mean_corruption_error(baseline[seed])
            for seed, own in by_seed.items()
            # the relative error is not defined if an error of the baseline is 0
            if seed in baseline and all(baseline[seed].corruption_errors.values())
        ]
        shares = {
            "clean error %": fmean(run.clean_error for run in runs),
            "mean error %": fmean(run.mean_error for run in runs),
            "mCE %": fmean(relative) if relative else None,
            **{f"accuracy % at {size}": fmean(run.by_size[size] for run in runs) for size in runs[0].by_size},
        }
        cells = {title: "" if share is None else f"{100 * share:.1f}" for title, share in shares.items()}
        table.append({"model": label, **cells, "seeds": len(runs)})
    return table
