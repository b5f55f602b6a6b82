"""Export of trained models to files that can be used without this package (.pt2) or without Python (ONNX).

Before a file is saved, it is compared with the model: the outputs must agree for 3 sizes of sets and 2 batch sizes.
"""

import copy
import dataclasses
import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import pointset
from pointset.errors import PointsetError
from pointset.export.formats import OUTPUTS, RunModel, WithProbabilities, format_of, record
from pointset.inputs import require_model
from pointset.runs.atomic import write_atomically
from pointset.training.checkpoints import describe_model
from pointset.zoo.abilities import check_export

CHECKED = tuple((sets, points) for points in (1, 100, 1500) for sets in (1, 3))
"""(sets, points) of the batches on which a file is compared with its model. All sizes differ from those of
`EXAMPLE`."""

TOLERANCE = 1e-4
"""Largest allowed difference between an output of a file and the model's output, relative to the largest value.

Rounding gives differences of about 1e-6, because the order of float32 operations differs. An error in the file (a size
or a branch that became a constant, or an ignored mask) changes the leading digits."""

NORMALIZATION_TEXTS = {
    "unit-sphere": "subtract the mean of the set's points, then divide by the largest distance of a point from 0",
    "standardize": "subtract the mean of all numbers of the set (one scalar), then divide by their standard deviation",
    "center-standardize": "subtract the mean of the set's points, then divide by the standard deviation of all numbers",
    "principal-axes": "as center-standardize, then turn the set to its principal axes, the longest along z",
    "upright-axes": "as center-standardize, then turn the set about the axis that points up: its longer horizontal "
    "axis is y, or z if y points up",
    "none": "the points are not changed",
}


def export_model(model: nn.Module, path: str | Path, *, mask: bool = False) -> float:
    """Write a model to a file for use without this package, and compare the file with the model.

    The input of the file is `points`, float32 [B, n, inputs] with any B and n from 1. The outputs are `logits` and
    `probabilities`, both [B, classes]. As in `classify`, the probabilities use the model's temperature. The metadata of
    the file contain the classes, the preparation of the points, the inputs, and the model's options.

    Args:
        model: a zoo model, or any module called as `model(points)`, or as `model(points, mask)` with `mask=True`.
        path: a path that ends in .pt2 (`torch.export`) or .onnx (ONNX). The folder must exist. An existing file is
            replaced.
        mask: True adds the input `mask`, bool [B, n], True at real points. A set without real points gives the logits
            of an empty set.

    Returns:
        The largest difference between an output of the file and the same output of the model, on the batches `CHECKED`.

    Raises:
        PointsetError: if the path has an unsupported suffix; if the folder does not exist; if a library for ONNX is
            missing; if a part of the model cannot be exported (the message names this part), or only for sets of one
            size; or if the outputs of the file and the model differ. No file is then written.

    Example:
        >>> pointset.export_model(pointset.create_model("rff-max", classes=2, dim=16), "small.pt2") < 1e-5
        True
    """
    require_model(model)
    path = Path(path)
    form, name = format_of(path), _name(model)
    check_export(model)
    fault = "depends on sizes or content of sets"
    try:
        program = record(model, _inputs(model), mask)
        fault = "has an operation without a translation"
        content = form.write(program, export_metadata(model, mask))
    except Exception as error:  # torch.export raises many types of exceptions
        what = f"{name} cannot be exported as {form.title} by torch {torch.__version__}: its computation {fault}"
        raise PointsetError(f"{what} ({_in_short(error)})") from error
    differences: list[float] = []

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)
        exported, eager = form.open(temporary), WithProbabilities(copy.deepcopy(model).cpu().float()).eval()
        for sets, points in CHECKED:
            differences.append(_difference(eager, exported, _example(model, sets, points, mask), path))

    write_atomically(path, write)
    return max(differences)


def export_metadata(model: nn.Module, mask: bool) -> dict[str, Any]:
    """Return the metadata of an exported file: inputs, outputs, classes, temperature and preparation.

    Args:
        model: a classifier of the package.
        mask: True if the exported model takes a mask.

    Returns:
        Plain data that can be written as JSON.
    """
    text: dict[str, Any] = {"points": f"input: float32 [batch, n, {_inputs(model)}], any batch and n from 1"}
    if mask:
        text["mask"] = "input: bool [batch, n], true at real points; values at the others have no effect"
    text["logits"] = "output: float32 [batch, classes]"
    text["probabilities"] = "output: float32 [batch, classes], softmax(logits / temperature)"
    text["temperature"] = getattr(model, "temperature", 1.0)
    if classes := getattr(model, "classes", None):
        text["classes"] = list(classes)
    if (preparation := getattr(model, "preparation", None)) is not None:
        how = preparation.normalize
        text["normalize"] = f"{how}: {NORMALIZATION_TEXTS[how]}, before the points are given"
        if preparation.features:
            names = ", ".join(preparation.features)
            text["features"] = f"after the coordinates of each point: {names}; not normalised"
        text["up"] = f"{preparation.up} is the upward axis of the points"
        text["trained_on"] = f"sets of {preparation.points} points"
        text["preparation"] = dataclasses.asdict(preparation)
    if getattr(model, "local_features", "none") != "none":
        text["local_features"] = "the file computes the local features from the points"
    made_by = f"pointset {pointset.__version__}, torch {torch.__version__}"
    return text | {"model": describe_model(model), "made_by": made_by}


def _example(model: nn.Module, sets: int, points: int, mask: bool) -> tuple[Tensor, ...]:
    """Return random points [sets, points, inputs] and, if `mask` is True, a mask.

    The first set has only real points, and the third has no real points.
    """
    cloud = torch.randn(sets, points, _inputs(model), generator=torch.Generator().manual_seed(points))
    if not mask:
        return (cloud,)
    real = torch.rand(sets, points, generator=torch.Generator().manual_seed(points)) < 2 / 3
    real[0], real[2:] = True, False
    return cloud, real


def _difference(model: WithProbabilities, exported: RunModel, example: tuple[Tensor, ...], path: Path) -> float:
    """Return the largest difference of an output. Raise a PointsetError if it is too large, or if the file fails."""
    name = _name(model.model)
    with torch.inference_mode():
        expected = model(*example)
        try:
            outputs = exported(*example)
        except Exception as error:  # each runtime raises other types of exceptions
            sizes = " x ".join(map(str, example[0].shape[:2]))
            fault = f"fails on batches of {sizes} points ({_in_short(error)})"
            raise PointsetError(f"{name} is not written: its file {fault}") from error
    differences = []
    for what, output, right in zip(OUTPUTS, outputs, expected, strict=True):
        difference, allowed = float((output - right).abs().max()), TOLERANCE * float(right.abs().max())
        if not difference <= allowed:  # also if it is NaN
            fault = f"by {difference:.1e}, more than the {allowed:.1e} that rounding explains"
            raise PointsetError(f"{path} is not written: its {what} differ from those of {name} {fault}")
        differences.append(difference)
    return max(differences)


def _name(model: nn.Module) -> str:
    return describe_model(model).get("name", type(model).__name__)


def _inputs(model: nn.Module) -> int:
    return getattr(model, "inputs", 3)


def _in_short(error: Exception) -> str:
    """Return the name of the unsupported operator in torch's message, or else the first sentence of the message."""
    text = str(error).strip()
    if operator := re.search(r"torch\.ops\.([\w.]+)", text):
        return operator[1]
    return re.split(r"\.?\s*(?:\.\s|\n|$)", text)[0] or type(error).__name__
