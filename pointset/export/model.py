"""Exports trained models to files that can be used without this package (.pt2), or without Python (ONNX).

Before a file is put in place, its logits are compared with those of the model, for three set sizes and two batch sizes.
"""

import copy
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import pointset
from pointset.data.preparation import Preparation
from pointset.errors import PointsetError
from pointset.export.formats import RunModel, format_of, record
from pointset.inputs import require_model
from pointset.runs.atomic import write_for_user
from pointset.runs.progress import progress_bar
from pointset.training.checkpoints import describe_model
from pointset.zoo.models import check_export

CHECKED = tuple((sets, points) for points in (1, 100, 1500) for sets in (1, 3))
"""(sets, points) of the batches on which a file is compared with its model; they differ from the example input of the
export."""

ROUNDINGS = 16
"""A file may differ from its model by this many times the model's own float32 rounding error; see `Agreement`."""

NORMALIZATION_TEXTS = {
    "unit-sphere": "subtract the mean of the set's points, then divide by the largest distance of a point from 0",
    "standardize": "subtract the mean of all numbers of the set (one scalar), then divide by their standard deviation",
    "center-standardize": "subtract the mean of the set's points, then divide by the standard deviation of all numbers",
    "principal-axes": "as center-standardize, then turn the set to its principal axes, the longest along z",
    "upright-axes": "as center-standardize, then turn the set about z, its longer horizontal axis along y",
    "upright-axes-y": "as center-standardize, then turn the set about y, its longer horizontal axis along z",
    "none": "the points are not changed",
}


@dataclass(frozen=True)
class Agreement:
    """The difference between the logits of a file and those of its model, and its upper bound.

    A correct file performs the same float32 operations in another order, so its logits differ by about the rounding
    error of the model. This error is measured as the difference between the model in float32 and in float64 on the same
    sets, and is at least half a unit in the last place of the largest logit. An error in the file (a size or a branch
    that became a constant, or an ignored mask) changes the leading digits of the logits.
    """

    difference: float
    """Largest absolute difference of a logit."""
    rounding: float
    """Largest absolute difference of a logit between the model and itself in float64, on the same sets."""
    batches: tuple[tuple[int, int], ...]
    """(sets, points) of every batch."""

    @property
    def bound(self) -> float:
        """The largest allowed difference."""
        return ROUNDINGS * self.rounding

    @property
    def holds(self) -> bool:
        """True if the difference can be due to rounding; False for NaN."""
        return self.difference <= self.bound


def export_model(
    model: nn.Module,
    path: str | Path,
    *,
    mask: bool = False,
    description: dict[str, Any] | None = None,
    progress: bool = True,
) -> Agreement:
    """Write a model for use without this package, and compare the file with the model.

    The input of the file is `points`, float32 [B, n, inputs] with any B and n from 1; its output is `logits`,
    [B, classes]. Its metadata contain what its user must know: classes, normalisation, inputs, and the model's options.

    Args:
        model: a zoo model, or any module called as `model(points)`, or as `model(points, mask)` with `mask=True`.
        path: *.pt2 for `torch.export`, *.onnx for ONNX; the folder must exist, an existing file is replaced.
        mask: add the input `mask`, bool [B, n], True at real points; a set without real points gives the logits of an
            empty set.
        description: the description of the run, as `load_run` returns it, for the classes and the normalisation.
        progress: show what is being done.

    Returns:
        The measured agreement of file and model.

    Raises:
        PointsetError: the path has another suffix, its folder does not exist, or a library for ONNX is missing; a part
            of the model cannot be exported (the message names it), or not for sets of any size; or the logits of the
            file differ from those of the model, in which case no file is written.

    Example:
        >>> agreement = pointset.export_model(pointset.create_model("rff-max", classes=2, dim=16), "small.pt2")
        >>> agreement.holds
        True
    """
    require_model(model)
    path = Path(path)
    form = format_of(path)
    name = _name(model)
    check_export(model)
    text = export_metadata(model, mask, description or {})
    agreements: list[Agreement] = []
    with progress_bar("", "step", 2 + len(CHECKED), show=progress, leave=False) as bar:
        bar.set_description_str("recording the program")
        try:
            program = record(model, _inputs(model), mask)
        except Exception as error:  # torch.export raises many types of exceptions
            fault = f"depends on sizes or content of sets in a way that torch.export lacks ({_in_short(error)})"
            raise PointsetError(f"{name} cannot be exported: its computation {fault}") from error
        bar.update()
        bar.set_description_str(f"writing {form.title}")
        try:
            content = form.write(program, text)
        except Exception as error:
            fault = f"torch does not support an operation ({_in_short(error)})"
            raise PointsetError(f"{name} cannot be exported as {form.title}: {fault}") from error
        bar.update()

        def write(temporary: Path) -> None:
            bar.set_description_str("comparing the file with the model")
            temporary.write_bytes(content)
            agreement = _agreement(model, form.open(temporary), mask, bar.update)
            if not agreement.holds:
                fault = f"by {agreement.difference:.1e}, more than the {agreement.bound:.1e} that rounding explains"
                raise PointsetError(f"{path} is not written: its logits differ from those of {name} {fault}")
            agreements.append(agreement)

        write_for_user(path, write)
    return agreements[0]


def export_metadata(model: nn.Module, mask: bool, description: dict[str, Any]) -> dict[str, Any]:
    """The metadata of an exported file: plain data, with the keys most important to its user first."""
    inputs, data = _inputs(model), description.get("data", {})
    text: dict[str, Any] = {"points": f"input: float32 [batch, n, {inputs}], any batch and n from 1"}
    if mask:
        text["mask"] = "input: bool [batch, n], true at real points; values at the others have no effect"
    text["logits"] = "output: float32 [batch, classes]; softmax over the classes makes them probabilities"
    if "classes" in data:
        text["classes"] = list(data["classes"])
    preparation = Preparation.from_dict(data["preparation"]) if "preparation" in data else None
    if preparation is not None:
        how = preparation.normalize
        text["normalize"] = f"{how}: {NORMALIZATION_TEXTS[how]}, before the points are given"
    if data.get("features"):
        text["features"] = f"after the coordinates of each point: {', '.join(data['features'])}; not normalised"
    if preparation is not None:
        text["up"] = f"{preparation.up} is the upward axis of the points"
        text["trained_on"] = f"sets of {preparation.points} points"
    if getattr(model, "neighbourhoods", "none") != "none":
        text["neighbourhoods"] = "the file computes what it needs of each point's neighbours from the points given"
    return text | {
        "model": describe_model(model),
        "made_by": f"pointset {pointset.__version__}, torch {torch.__version__}",
    }


def _agreement(model: nn.Module, exported: RunModel, mask: bool, on_batch: Callable[[], object]) -> Agreement:
    eager, exact = _eager(model), _eager(model, torch.float64)
    differences, roundings = [], []
    with torch.inference_mode():
        for sets, points in CHECKED:
            cloud = torch.randn(sets, points, _inputs(model), generator=torch.Generator().manual_seed(points))
            real = torch.rand(sets, points, generator=torch.Generator().manual_seed(points)) < 2 / 3 if mask else None
            if real is not None:  # the first set has all its points, the third is empty
                real[0], real[2:] = True, False
            logits, precise = eager(cloud, real), exact(cloud.double(), real)
            resolution = torch.finfo(torch.float32).eps / 2 * logits.abs().max()
            roundings += [_largest(logits, precise), float(resolution)]
            try:
                answer = exported(cloud, real)
            except Exception as error:  # each runtime raises its own types of exceptions
                fault = f"fails on batches of {sets} x {points} points ({_in_short(error)})"
                raise PointsetError(f"{_name(model)} is not written: its file {fault}") from error
            differences.append(_largest(answer, logits))
            on_batch()
    # The maximum of numpy is NaN if one of them is.
    return Agreement(float(np.max(differences)), max(roundings), CHECKED)


def _eager(model: nn.Module, dtype: torch.dtype = torch.float32) -> RunModel:
    """A copy of the model on the CPU, in evaluation mode."""
    copied = copy.deepcopy(model).to("cpu", dtype).eval()
    return lambda points, mask: copied(points) if mask is None else copied(points, mask)


def _largest(logits: Tensor, expected: Tensor) -> float:
    return float((logits - expected).abs().max())


def _name(model: nn.Module) -> str:
    return describe_model(model).get("name", type(model).__name__)


def _inputs(model: nn.Module) -> int:
    return getattr(model, "inputs", 3)


def _in_short(error: Exception) -> str:
    """The name of the unsupported operator in torch's message, else its first sentence."""
    text = str(error).strip()
    if operator := re.search(r"torch\.ops\.([\w.]+)", text):
        return operator[1]
    return re.split(r"\.?\s*(?:\.\s|\n|$)", text)[0] or type(error).__name__
