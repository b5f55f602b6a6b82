"""Fit baselines: rows of all training shapes, a temperature from held-out folds, one fit."""

import time
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pointset.baselines.folds import assign_folds
from pointset.baselines.models import Baseline
from pointset.data.axes import UP_TO_Z
from pointset.data.batches import fixed_batches
from pointset.data.normalize import half_turns
from pointset.data.point_sets import PointSets
from pointset.evaluation.calibration import fit_temperature
from pointset.nn.modes import in_evaluation_mode
from pointset.runs.progress import followed
from pointset.training.checkpoints import RunFolder
from pointset.training.history import Fitted

FOLDS = 5
FEW = 2000
"""Up to so many shapes, all folds are held out in turn for the temperature; above, one is."""


def baseline_of(model: nn.Module) -> Baseline | None:
    """The baseline inside a classifier of the zoo, or None."""
    inner = getattr(model, "model", None)
    return inner if isinstance(inner, Baseline) else None


def set_pose(baseline: Baseline, train: PointSets) -> None:
    """Let a baseline see shapes with Z up, and all half turns that the normalisation of the sets may confuse."""
    baseline.turn = torch.tensor(UP_TO_Z[train.up])
    baseline.views = half_turns(train.options.normalize)


def extract_rows(baseline: Baseline, sets: PointSets, progress: bool) -> list[Tensor]:
    """The rows of all shapes, one block [N, views, width] for each extractor."""
    batches = fixed_batches(sets, 64)
    count = -(-len(sets) // 64)
    with torch.inference_mode(), in_evaluation_mode(baseline):
        blocks = [
            baseline.blocks(batch.points, batch.mask)
            for batch in followed(batches, "computing features", "batch", count, show=progress)
        ]
    return [torch.cat(block).clone() for block in zip(*blocks, strict=True)]


def held_out_logits(baseline: Baseline, blocks: list[Tensor], labels: Tensor, folds: np.ndarray, most: int) -> Tensor:
    """Logits [N, classes] of each shape by a head that was fitted without its fold; NaN for folds from `most` on."""
    logits = torch.full((len(labels), baseline.head.classes), torch.nan)
    for fold in range(most):
        inside = torch.from_numpy(folds == fold)
        if inside.any():
            baseline.fit_rows([block[~inside] for block in blocks], labels[~inside])
            logits[inside] = baseline.logits([block[inside] for block in blocks])
    return logits


def fit_head(baseline: Baseline, blocks: list[Tensor], labels: Tensor, held_out: Tensor) -> None:
    """Fit the head to all rows, at the temperature that suits the held-out logits best."""
    tested = held_out.isfinite().all(dim=1)
    baseline.fit_rows(blocks, labels)
    if tested.any():
        temperature = fit_temperature(held_out[tested].numpy(), labels[tested].numpy())
        baseline.head.temperature = torch.tensor(temperature, dtype=torch.float32)


def fit_baseline(
    model: nn.Module, baseline: Baseline, train: PointSets, seed: int, folder: RunFolder | None, progress: bool
) -> Fitted:
    """Fit a baseline to the fixed subsets of all training shapes; its run has one row of history."""
    began = time.perf_counter(), time.process_time()
    set_pose(baseline, train)
    blocks = extract_rows(baseline, train, progress)
    folds = assign_folds(train.names, train.labels.tolist(), FOLDS, seed)
    baseline.head.temperature = torch.ones(())
    most = FOLDS if len(train) <= FEW else 1
    held_out = held_out_logits(baseline, blocks, train.labels, folds, most)
    fit_head(baseline, blocks, train.labels, held_out)
    with torch.inference_mode():
        logits = baseline.logits(blocks)
    row: dict[str, Any] = {
        "epoch": 1,
        "loss": float(nn.functional.cross_entropy(logits, train.labels)),
        "accuracy": float((logits.argmax(dim=1) == train.labels).float().mean()),
        "seconds": time.perf_counter() - began[0],
        "processor_seconds": time.process_time() - began[1],
    }
    if folder is not None:
        folder.write_history([row])
        folder.finish(model.state_dict())
    return Fitted(model.eval(), [row], 1)
