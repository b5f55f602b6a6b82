"""Fitting of baselines to the feature vectors of all training shapes, with a temperature from out-of-fold logits."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pointset.baselines.models import Baseline
from pointset.data.axes import UP_TO_Z
from pointset.data.batches import fixed_batches
from pointset.data.groups import Groups
from pointset.data.normalize import half_turns
from pointset.data.point_sets import PointSets
from pointset.data.splitting import assign_folds
from pointset.nn.layers import in_evaluation_mode
from pointset.runs.progress import followed
from pointset.training.checkpoints import EpochRow, Fitted, RunFolder, describe_run, make_fitted
from pointset.training.out_of_fold import FOLDS, out_of_fold_temperature
from pointset.training.recipe import Recipe

FEW_SHAPES = 2000
"""Maximum number of shapes for which the temperature is fitted on all folds. With more shapes, one fold is used."""


def baseline_of(model: nn.Module) -> Baseline | None:
    """Return the baseline inside a classifier of the zoo, or None."""
    inner = getattr(model, "model", None)
    return inner if isinstance(inner, Baseline) else None


def set_pose(baseline: Baseline, train: PointSets) -> None:
    """Set the baseline's rotation to Z up, and its views to the half turns that the normalisation leaves open."""
    baseline.turn = torch.tensor(UP_TO_Z[train.up])
    baseline.views = half_turns(train.options.normalize, train.up)


def extract_rows(baseline: Baseline, sets: PointSets, progress: bool) -> list[Tensor]:
    """Return the feature vectors of all shapes: one block [N, views, width] per feature extractor."""
    sets = sets.with_local_features(baseline.local_features)
    batches = fixed_batches(sets, 64)
    shown = followed(batches, "computing features", "shape", len(sets), show=progress, size=lambda one: len(one.labels))
    with torch.inference_mode(), in_evaluation_mode(baseline):
        blocks = [baseline.blocks(batch.points, batch.mask) for batch in shown]
    return [torch.cat(block).clone() for block in zip(*blocks, strict=True)]


def fit_head(
    baseline: Baseline,
    blocks: list[Tensor],
    labels: Tensor,
    folds: NDArray[np.int64],
    groups: Groups,
    most: int = FOLDS,
    progress: bool = False,
) -> Tensor:
    """Fit the head to the feature vectors of all shapes, with a temperature from out-of-fold logits.

    The temperature is 1 if the out-of-fold logits are not better than chance. Returns the out-of-fold logits [N,
    classes] at this temperature. The logits of shapes without a fold, and of shapes in the folds `most`, `most` + 1,
    ..., are NaN.
    """
    head = baseline.head
    head.temperature = torch.ones(())
    logits = torch.full((len(labels), head.outputs), torch.nan)
    for fold in followed(range(most), "out-of-fold fits", "fold", most, show=progress):
        inside = torch.from_numpy(folds == fold)
        if inside.any():
            baseline.fit_rows([block[~inside] for block in blocks], labels[~inside])
            logits[inside] = baseline.logits([block[inside] for block in blocks])
    baseline.fit_rows(blocks, labels)
    if (temperature := out_of_fold_temperature(logits, labels, groups)) is not None:
        head.temperature = torch.tensor(temperature, dtype=torch.float32)
    return logits / head.temperature


def extract_and_fit(
    baseline: Baseline, train: PointSets, folds: NDArray[np.int64], groups: Groups, most: int, progress: bool
) -> tuple[Tensor, list[Tensor]]:
    """Fit a baseline to the fixed subsets of shapes. Return out-of-fold logits and feature vectors (see `fit_head`)."""
    set_pose(baseline, train)
    blocks = extract_rows(baseline, train, progress)
    return fit_head(baseline, blocks, train.labels, folds, groups, most, progress), blocks


def fit_rows(baseline: Baseline, train: PointSets, seed: int, progress: bool) -> EpochRow:
    """Fit a baseline to the fixed subsets of all training shapes, and return the only row of its history."""
    began, busy = time.perf_counter(), time.process_time()
    groups, most = train.grouping.groups, FOLDS if len(train) <= FEW_SHAPES else 1
    folds = assign_folds(groups, train.labels.tolist(), seed, FOLDS)
    _, blocks = extract_and_fit(baseline, train, folds, groups, most, progress)
    with torch.inference_mode():
        outputs = baseline.logits(blocks)
    return {
        "epoch": 1,
        "loss": float(nn.functional.cross_entropy(outputs, train.labels)),
        "accuracy": float((outputs.argmax(dim=1) == train.labels).float().mean()),
        "seconds": time.perf_counter() - began,
        "processor_seconds": time.process_time() - busy,
    }


def fit_baseline(
    model: Any, train: PointSets, recipe: Recipe, seed: int, run: str | Path | None, progress: bool
) -> Fitted:
    """Fit the baseline `model.model`, or load it from the finished run. The history has one row."""
    if run is None:
        return make_fitted(model, [fit_rows(model.model, train, seed, progress)], recipe)
    folder = RunFolder(Path(run))
    with folder.locked():
        folder.describe(describe_run(model, train, recipe, seed))
        if not folder.finished:
            folder.write_history([fit_rows(model.model, train, seed, progress)])
            folder.finish(model.state_dict())
        return folder.fitted(model, recipe)
