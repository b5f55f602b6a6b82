"""Fit baselines: rows of all training shapes, a temperature from held-out folds, one fit."""

import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from pointset.baselines.folds import assign_folds
from pointset.baselines.heads import Head
from pointset.baselines.models import Baseline
from pointset.data.axes import UP_TO_Z
from pointset.data.batches import fixed_batches
from pointset.data.normalize import half_turns
from pointset.data.point_sets import PointSets
from pointset.evaluation.calibration import fit_temperature
from pointset.nn.layers import in_evaluation_mode
from pointset.runs.progress import followed
from pointset.training.checkpoints import Fitted, Row, RunFolder, describe, make_fitted
from pointset.training.objectives import learn_units
from pointset.training.recipe import Recipe
from pointset.zoo.regressors import Regressor

FOLDS = 5
FEW = 2000
"""Up to so many shapes, all folds are held out in turn for the temperature; above, one is."""


def baseline_of(model: nn.Module) -> Baseline | None:
    """The baseline inside a classifier or a regressor of the zoo, or None."""
    inner = getattr(model.networks[0] if isinstance(model, Regressor) else model, "model", None)
    return inner if isinstance(inner, Baseline) else None


def set_pose(baseline: Baseline, train: PointSets) -> None:
    """Let a baseline see shapes with Z up, and all half turns that the normalisation of the sets may confuse."""
    baseline.turn = torch.tensor(UP_TO_Z[train.up])
    baseline.views = half_turns(train.options.normalize)


def extract_rows(
    baseline: Baseline, sets: PointSets, progress: bool, regressor: Regressor | None = None, what: str = "features"
) -> list[Tensor]:
    """The rows of all shapes, one block [N, views, width] for each extractor."""
    batches, blocks = fixed_batches(sets if regressor is None else sets.normalized("none"), 64), []
    with torch.inference_mode(), in_evaluation_mode(baseline):
        for batch in followed(batches, f"computing {what}", "batch", -(-len(sets) // 64), show=progress):
            points = batch.points
            if regressor is not None:
                points = regressor.prepared(points, batch.mask, regressor.networks[0])
            blocks.append(baseline.blocks(points, batch.mask))
    return [torch.cat(block).clone() for block in zip(*blocks, strict=True)]


def held_out_logits(baseline: Baseline, blocks: list[Tensor], labels: Tensor, folds: np.ndarray, most: int) -> Tensor:
    """Logits [N, classes] of each shape by a head that was fitted without its fold; NaN for folds from `most` on."""
    if isinstance(baseline.head, Head):
        baseline.head.temperature = torch.ones(())
    logits = torch.full((len(labels), baseline.head.outputs), torch.nan)
    for fold in range(most):
        inside = torch.from_numpy(folds == fold)
        if inside.any():
            baseline.fit_rows([block[~inside] for block in blocks], labels[~inside])
            logits[inside] = baseline.logits([block[inside] for block in blocks])
    return logits


def fit_head(baseline: Baseline, blocks: list[Tensor], labels: Tensor, held_out: Tensor) -> None:
    """Fit the head to all rows, for classes at the temperature that suits the held-out logits best."""
    tested = held_out.isfinite().all(dim=1)
    baseline.fit_rows(blocks, labels)
    if tested.any() and isinstance(baseline.head, Head):
        temperature = fit_temperature(held_out[tested].numpy(), labels[tested].numpy())
        baseline.head.temperature = torch.tensor(temperature, dtype=torch.float32)


class FittedRows(NamedTuple):
    """What came of fitting the head of a baseline."""

    outputs: Tensor
    """[N, outputs] for the training shapes."""
    held_out: Tensor
    """The same by heads that were fitted without a shape's fold; NaN for shapes that were not held out."""
    truth: Tensor
    """Labels [N], or standardised targets [N, targets]."""


def fit_rows(model: nn.Module, train: PointSets, folds: np.ndarray, most: int, progress: bool) -> FittedRows:
    """Fit the head of a baseline to the fixed subsets of all training shapes, and some held-out folds before."""
    baseline = baseline_of(model)
    assert baseline is not None
    set_pose(baseline, train)
    regressor = model if isinstance(model, Regressor) else None
    line = torch.zeros(()) if regressor is None else learn_units(regressor, train)
    spec: Any = model.spec
    blocks = extract_rows(baseline, train, progress, regressor, spec.name.rpartition("-")[0])
    truth = train.labels if regressor is None else regressor.standardised(train.learned) - line
    held_out = held_out_logits(baseline, blocks, truth, folds, most)
    fit_head(baseline, blocks, truth, held_out)
    with torch.inference_mode():
        outputs = baseline.logits(blocks)
    if regressor is None:
        return FittedRows(outputs, held_out, truth)
    held_out = held_out + line
    tested = held_out.isfinite().all(dim=1)
    regressor.calibrate(held_out[tested], train.learned[tested])
    return FittedRows(outputs + line, held_out, truth + line)


def fit_baseline(
    model: nn.Module, train: PointSets, recipe: Recipe, seed: int, run: str | Path | None, progress: bool
) -> Fitted:
    """Fit a baseline, or load it from its finished run, which has one row of history."""
    if run is None:
        return make_fitted(model, [_fit_once(model, train, seed, progress)], recipe)
    folder = RunFolder(Path(run))
    with folder.locked():
        folder.claim(describe(model, train, recipe, seed))
        if not folder.finished:
            folder.write_history([_fit_once(model, train, seed, progress)])
            folder.finish(model.state_dict())
        return folder.fitted(model, recipe)


def _fit_once(model: nn.Module, train: PointSets, seed: int, progress: bool) -> Row:
    """Fit a baseline; the row of its history."""
    began = time.perf_counter(), time.process_time()
    folds = assign_folds(train.names, train.labels.tolist(), FOLDS, seed)
    outputs, _, truth = fit_rows(model, train, folds, FOLDS if len(train) <= FEW else 1, progress)
    row: Row = {"epoch": 1}
    if train.targets is None:
        right = (outputs.argmax(dim=1) == truth).float()
        row |= {"loss": float(nn.functional.cross_entropy(outputs, truth)), "accuracy": float(right.mean())}
    else:
        errors = outputs - truth
        row |= {"loss": float(errors.square().mean()), "mae": float(errors.abs().mean())}
    return row | {"seconds": time.perf_counter() - began[0], "processor_seconds": time.process_time() - began[1]}
