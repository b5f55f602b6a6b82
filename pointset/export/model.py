"""Trained models as files that need neither this package nor, as ONNX, Python.

A file is seen to answer as the model does before it takes its place: sets of three sizes, two sizes of batch.
"""

import copy
import math
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import pointset
from pointset.configuration import Count
from pointset.data.loading import normalization_elsewhere
from pointset.errors import PointsetError
from pointset.export.files import Run, format_of, record
from pointset.export.portable import portable
from pointset.inputs import takes
from pointset.runs.atomic import write_for_user
from pointset.runs.threads import torch_threads
from pointset.training.checkpoints import describe_model
from pointset.zoo.models import check_export

CHECKED = tuple((sets, points) for points in (1, 100, 1500) for sets in (1, 3))
"""(sets, points) of the batches on which a file is compared with its model; none is the size that was recorded."""

ROUNDINGS = 16
"""A file may differ from the model by so many times the model's own float32 rounding; see `Agreement`."""

NORMALIZATIONS = {
    "unit-sphere": "subtract the mean of the set's points, then divide by the largest distance of a point from 0",
    "standardize": "subtract the mean of all numbers of the set (one scalar), then divide by their standard deviation",
    "center-standardize": "subtract the mean of the set's points, then divide by the standard deviation of all numbers",
    "none": "the points are not changed",
}


@dataclass(frozen=True)
class Agreement:
    """How far the logits of a file are from those of its model, and how far they may be.

    Another order of the same float32 operations, which is all that a file is, moves logits about as far as they stand
    from the exact ones. That distance is measured: the model's from itself in float64, on the same sets, and at least
    half a unit in the last place of the largest logit, as less cannot be seen. A size or a branch that froze into the
    file, or a mask that it does not heed, changes what is computed and moves logits in their first digits.

    Example:
        >>> found = pointset.Agreement(difference=1e-7, rounding=2e-7, batches=((1, 100),))
        >>> found.holds
        True
    """

    difference: float
    """Largest absolute difference of a logit."""
    rounding: float
    """Largest absolute difference of a logit between the model and itself in float64, on the same sets."""
    batches: tuple[tuple[int, int], ...]
    """(sets, points) of every batch."""

    @property
    def bound(self) -> float:
        """The largest difference that passes."""
        return ROUNDINGS * self.rounding

    @property
    def holds(self) -> bool:
        """True if rounding explains the difference; never for NaN."""
        return self.difference <= self.bound


@dataclass(frozen=True)
class Latency:
    """Of one set: medians of repeats that took turns.

    Example:
        >>> from pointset.export.model import Latency
        >>> Latency(points=100, eager_ms=1.5, exported_ms=1.0).points
        100
    """

    points: int
    """Of the set."""
    eager_ms: float
    """Milliseconds of the model."""
    exported_ms: float
    """Milliseconds of the file."""


@takes(model=nn.Module, path=str | Path, description=dict | None)
def export_model(
    model: nn.Module, path: str | Path, *, mask: bool = False, description: dict[str, Any] | None = None
) -> Agreement:
    """Write a model for use without this package, and check the file against the model.

    The file takes `points` float32 [B, n, inputs] with any B and n from 1, and gives `logits` [B, classes]. It says in
    itself what its user has to know: classes, normalisation, inputs, how the model was built.

    Args:
        model: of the zoo, or any module called as `model(points)`, or `model(points, mask)` if a mask is wanted.
        path: *.pt2 for `torch.export`, *.onnx for ONNX; its folder must exist, a file there is replaced.
        mask: add the input `mask` bool [B, n], True at real points; a set without any gives the logits of an empty set.
        description: the run's, as `load_run` returns it, for the classes and the normalisation.

    Returns:
        The agreement that was found.

    Raises:
        PointsetError: the name has another ending, its folder does not exist, or a library for ONNX is missing; a
            part of the model cannot be exported (it is named), or the model cannot be recorded for sets of any size; or
            the file disagrees with the model: then none is left.

    Example:
        >>> agreement = pointset.export_model(pointset.create_model("rff-max", classes=2, dim=16), "small.pt2")
        >>> agreement.holds
        True
    """
    path = Path(path)
    form = format_of(path)
    name = _name(model)
    check_export(model)
    text = describe(model, mask, description or {})
    try:
        program = record(portable(model), _inputs(model), mask)
    except Exception as error:  # torch has many ways of saying that it cannot
        raise PointsetError(
            f"{name} cannot be exported: what it computes depends on the sizes or the content of its sets in a way "
            f"that torch cannot record ({_in_short(error)})"
        ) from error
    try:
        content = form.write(program, text)
    except Exception as error:
        raise PointsetError(
            f"{name} cannot be exported as {form.title}: torch has no translation of it ({_in_short(error)})"
        ) from error
    found: list[Agreement] = []

    def write(temporary: Path) -> None:
        temporary.write_bytes(content)
        found.append(_agreement(model, form.open(temporary, threads=1), mask))
        if not found[0].holds:
            raise PointsetError(
                f"{path} is not written: its logits would differ from those of {name} by {found[0].difference:.1e}, "
                f"more than rounding explains ({found[0].bound:.1e})"
            )

    write_for_user(path, write)
    return found[0]


def describe(model: nn.Module, mask: bool, description: dict[str, Any]) -> dict[str, Any]:
    """What a file says of itself: plain data, the keys in the order in which a reader wants them."""
    inputs, data = _inputs(model), description.get("data", {})
    text: dict[str, Any] = {"points": f"input: float32 [batch, n, {inputs}], any batch and n from 1"}
    if mask:
        text["mask"] = "input: bool [batch, n], true at real points; values at the others have no effect"
    text["logits"] = "output: float32 [batch, classes]; softmax over the classes makes them probabilities"
    if "classes" in data:
        text["classes"] = list(data["classes"])
    if data.get("normalize") in NORMALIZATIONS:
        how = normalization_elsewhere(data)
        text["normalize"] = f"{how}: {NORMALIZATIONS[how]}, before the points are given"
    if data.get("features"):
        text["features"] = f"behind the coordinates of each point: {', '.join(data['features'])}; not normalised"
    if data.get("up"):
        text["up"] = f"{data['up']} is the upward axis of the points"
    if "points" in data:
        text["trained_on"] = f"sets of {data['points']} points"
    return text | {
        "model": describe_model(model),
        "made_by": f"pointset {pointset.__version__}, torch {torch.__version__}",
    }


@takes(model=nn.Module, path=str | Path, sizes=Sequence[int], repeats=Count, threads=Count)
def compare_latency(
    model: nn.Module,
    path: str | Path,
    *,
    mask: bool = False,
    sizes: Sequence[int] = (100, 1000, 5000),
    repeats: int = 9,
    threads: int = 1,
) -> list[Latency]:
    """Time a file beside its model on the CPU, on one set of each size, the two taking turns.

    Args:
        model: as it was exported.
        path: the file that was written.
        mask: whether the file takes a mask; it hides nothing here.
        sizes: points per set.
        repeats: timings of each, after one to warm up.
        threads: of torch, and of onnxruntime.

    Returns:
        Medians of both, one row for each size.

    Example:
        >>> model = pointset.create_model("rff-max", classes=2, dim=16)
        >>> agreement = pointset.export_model(model, "small.pt2")
        >>> [row.points for row in pointset.compare_latency(model, "small.pt2", sizes=(10, 100), repeats=2)]
        [10, 100]
    """
    exported, eager = format_of(Path(path)).open(Path(path), threads), _eager(model)
    with torch_threads(threads), torch.inference_mode():
        return [_latency(eager, exported, points, _inputs(model), mask, repeats) for points in sizes]


def _latency(eager: Run, exported: Run, points: int, inputs: int, mask: bool, repeats: int) -> Latency:
    cloud = _cloud(1, points, inputs)
    real = torch.ones(1, points, dtype=torch.bool) if mask else None
    times: dict[Run, list[float]] = {eager: [], exported: []}
    for turn in range(1 + repeats):
        # Each goes first in turn, so that periodic work of the machine does not always meet the same one.
        for run in sorted(times, key=[eager, exported].index, reverse=turn % 2 == 1):
            start = time.perf_counter()
            run(cloud, real)
            times[run].append(1000.0 * (time.perf_counter() - start))
    eager_ms, exported_ms = (round(statistics.median(found[1:]), 3) for found in times.values())
    return Latency(points, eager_ms, exported_ms)


def _agreement(model: nn.Module, exported: Run, mask: bool) -> Agreement:
    eager, exact = _eager(model), _eager(model, torch.float64)
    difference, rounding = 0.0, 0.0
    with torch.inference_mode():
        for sets, points in CHECKED:
            cloud, real = _cloud(sets, points, _inputs(model)), _some(sets, points) if mask else None
            logits, precise = eager(cloud, real), exact(cloud.double(), real)
            unseen = torch.finfo(torch.float32).eps / 2 * logits.abs().max()
            rounding = max(rounding, _largest(logits, precise), float(unseen))
            try:
                answer = exported(cloud, real)
            except Exception as error:  # each runtime has its own, onnxruntime some for every kind of fault
                raise PointsetError(
                    f"the exported {_name(model)} fails on batches of {sets} x {points} points ({_in_short(error)}): "
                    "the file is not written"
                ) from error
            difference = _most(difference, _largest(answer, logits))
    return Agreement(difference, rounding, CHECKED)


def _eager(model: nn.Module, dtype: torch.dtype = torch.float32) -> Run:
    """The model as it is, on the CPU, in evaluation."""
    copied = copy.deepcopy(model).to("cpu", dtype).eval()
    return lambda points, mask: copied(points) if mask is None else copied(points, mask)


def _cloud(sets: int, points: int, inputs: int) -> Tensor:
    """Of the size that normalised points have."""
    return torch.randn(sets, points, inputs, generator=torch.Generator().manual_seed(points))


def _some(sets: int, points: int) -> Tensor:
    """A mask [B, n] with about a third of the points hidden; the first of all sets is whole, the third empty."""
    real = torch.rand(sets, points, generator=torch.Generator().manual_seed(points)) < 2 / 3
    real[0] = True
    real[2:] = False
    return real


def _largest(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max())


def _most(first: float, second: float) -> float:
    """The larger, and NaN if one of them is."""
    return math.nan if math.isnan(first) or math.isnan(second) else max(first, second)


def _name(model: nn.Module) -> str:
    return describe_model(model).get("name", type(model).__name__)


def _inputs(model: nn.Module) -> int:
    return getattr(model, "inputs", 3)


def _in_short(error: Exception) -> str:
    """The operator that could not be translated, else the first line of what torch says."""
    text = str(error).strip()
    if operator := re.search(r"torch\.ops\.([\w.]+)", text):
        return operator[1]
    return re.split(r"\.?\s*(?:\.\s|\n|$)", text)[0] or type(error).__name__
