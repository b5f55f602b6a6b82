"""The one way from sets to predictions: `predict` for classes, `embed_rows` for embeddings.

They take `PointSets`, or batches: `cloud_batches` makes them of clouds as a user has them, `padded_batches` of prepared
clouds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from pointset.data.batches import fixed_batches
from pointset.data.normalize import center_standardize, is_standardized, normalization
from pointset.data.point_sets import PointSets
from pointset.data.ragged import pad_sets
from pointset.errors import described
from pointset.inputs import InputError, as_points, as_sets
from pointset.nn.layers import in_evaluation_mode

SETS_AT_ONCE = 64
"""Sets in a batch."""
ROWS_AT_ONCE = 2**14
"""Rows of the sets that go through a model together in evaluation on a CPU: what a layer writes stays in the cache.
Sixteen sets of 1,024 points at a time take 0.6 to 0.9 of the time of 64, with ISABs 0.97."""
MOST_ROWS, MOST_PAIRS = 2**16, 10**8
"""Most rows, and pairs of rows, in a batch of clouds of several sizes: a model may keep something of each pair."""

Clouds = Any
"""[n, d], [B, n, d], or a list or an array of objects of B clouds [n_i, d]: arrays or tensors of numbers."""
Sets = PointSets | Iterable[tuple[Any, ...]]
"""`PointSets`, whose fixed subsets are taken; or batches of prepared sets: points [b, n, d], their mask, anything."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a classifier says about N sets."""

    logits: Float[Tensor, "N classes"]
    """float32, on the device of the model."""
    temperature: float | Float[Tensor, "N 1"] = 1.0
    """Of the model, or of each set (see `pointset.zoo.trust`): probabilities are softmax(logits / temperature)."""
    last_rows: Float[Tensor, "N width"] | None = None
    """The input of the model's last linear layer, if it was requested and there is such a layer."""
    novelty: Float[Tensor, " N"] | None = None
    """How far each set is from the training shapes, see `pointset.zoo.trust`: 1 is typical of held-out shapes. None if
    the model does not know."""

    @property
    def probabilities(self) -> Float[ndarray, "N classes"]:
        """Probabilities of the classes, in double precision."""
        return (self.logits.double() / self.temperature).softmax(dim=1).cpu().numpy()


def predict(model: nn.Module, sets: Sets, *, batch_size: int = SETS_AT_ONCE, last_rows: bool = False) -> Prediction:
    """Predict the classes of sets on the model's device, in evaluation mode, without gradients.

    Args:
        model: called as `model(points [B, n, d], mask) -> logits [B, classes]`.
        sets: `PointSets`, or batches.
        batch_size: of `PointSets`; does not change the result beyond rounding.
        last_rows: also return the input of the last linear layer.

    Example:
        >>> from pointset.zoo.predicting import predict
        >>> prediction = predict(model, test)
        >>> prediction.logits.shape, prediction.probabilities.sum(axis=1).round(6).tolist()[:2]
        (torch.Size([8, 2]), [1.0, 1.0])
    """
    trust = getattr(model, "trust", None)
    with _last_inputs(model, last_rows or trust is not None) as rows:
        logits = _each(model, sets, batch_size, partial(forward, model))
    return _prediction(model, logits, rows)


def _prediction(model: nn.Module, logits: Tensor, rows: list[Tensor]) -> Prediction:
    temperature, trust = getattr(model, "temperature", 1.0), getattr(model, "trust", None)
    last_rows, novelty = torch.cat(rows) if rows else None, None
    if trust is not None and last_rows is not None:
        temperature = (temperature * trust.factors(last_rows)).to(logits.device)
        novelty = trust.novelty(last_rows)
    return Prediction(logits, temperature, last_rows, novelty)


def embed_rows(model: nn.Module, sets: Sets, *, batch_size: int = SETS_AT_ONCE) -> Float[Tensor, "N d"]:
    """The embedding of sets: what `model.embed_sets` gives, float32 on the model's device; see `predict`."""
    embed: Any = getattr(model, "embed_sets", None)
    if embed is None:
        raise InputError(f"a {type(model).__name__} has no embedding: use a model with an encoder and a pooling")
    return _each(model, sets, batch_size, partial(_in_pieces, embed))


def forward(model: nn.Module, points: Tensor, mask: Tensor | None) -> Tensor:
    """What `model(points, mask)` gives, where points and model are on one device.

    Without gradients a batch goes in pieces, sets of several sizes sorted by size, so that there is little padding.
    """
    return model(points, mask) if torch.is_grad_enabled() else _in_pieces(model, points, mask)


def cloud_batches(
    clouds: Clouds, mask: Any = None, *, inputs: int = 3, normalize: str = "none", batch_size: int = SETS_AT_ONCE
) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Batches of clouds as a user has them, at most `batch_size` each, with normalised coordinates; for `predict`."""
    change, first = normalization(normalize), 0
    clouds = _listed(clouds)
    for points, real in _converted(clouds, mask, inputs, batch_size):
        _check(points, real, first)
        first += len(points)
        if normalize != "none":
            places = points[..., :3]
            moved = change(places, real)
            if change is center_standardize:  # those that `standardize` has normalised stay where it has put them
                moved = torch.where(is_standardized(places, real)[:, None, None], places, moved)
            points = torch.cat([moved, points[..., 3:]], dim=2)
        yield points, real


def padded_batches(clouds: Iterable[Tensor], batch_size: int = SETS_AT_ONCE) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Batches of clouds [n_i, d] of one type, each of as many as are worth to be in memory together with padding."""
    batch: list[Tensor] = []
    for cloud in clouds:
        sets, largest = len(batch) + 1, max(map(len, [*batch, cloud]))
        if sets > 1 and (sets > batch_size or sets * largest > MOST_ROWS or sets * largest**2 > MOST_PAIRS):
            yield pad_sets(batch)
            batch = []
        batch.append(cloud)
    if batch:
        yield pad_sets(batch)


def as_given(values: Tensor, clouds: Clouds) -> Any:
    """A result [B, ...] as an array; if one of the clouds is a tensor, as a tensor on its device."""
    clouds = [clouds] if isinstance(clouds, Tensor) else _listed(clouds)
    tensor = next((cloud for cloud in clouds if isinstance(cloud, Tensor)), None)
    return values.cpu().numpy() if tensor is None else values.to(tensor.device)


def _each(model: nn.Module, sets: Sets, batch_size: int, compute: Callable[[Tensor, Tensor | None], Tensor]) -> Tensor:
    """The results of all batches, in float32 on the model's device."""
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    batches = fixed_batches(sets, batch_size) if isinstance(sets, PointSets) else sets
    with torch.inference_mode(), in_evaluation_mode(model):
        moved = ((points.to(device), None if mask is None else mask.to(device)) for points, mask, *_ in batches)
        return torch.cat([compute(points, mask).float() for points, mask in moved])


def _converted(clouds: Any, mask: Any, inputs: int, batch_size: int) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Clouds of a floating type and their mask; of one size or padded."""
    listed = isinstance(clouds, Sequence) and not isinstance(clouds, str | bytes)
    if not (listed or isinstance(clouds, Tensor | ndarray)):
        kinds = f"an array, a tensor or a list of clouds [n, {inputs}]"
        raise InputError(f"points must be {kinds}, got {described(clouds)}")
    if listed and mask is not None:
        raise InputError("mask is for a batch [B, n]: leave it out, clouds of a list have only real points")
    if not len(clouds):
        raise InputError("clouds to predict are missing: give at least one")
    if listed:
        yield from padded_batches([_cloud(cloud, index, inputs) for index, cloud in enumerate(clouds)], batch_size)
        return
    points, real = as_sets(clouds, mask, inputs, None)
    masks = [None] * len(points) if real is None else real.split(batch_size)
    yield from zip(_floating(points).split(batch_size), masks, strict=False)


def _listed(clouds: Clouds) -> Any:
    """An array of objects, such as a column of ragged clouds, as a list."""
    return list(clouds) if isinstance(clouds, ndarray) and clouds.dtype.kind == "O" and clouds.ndim == 1 else clouds


def _cloud(cloud: Any, index: int, inputs: int) -> Tensor:
    try:
        points = _floating(as_points(cloud, inputs, None, "[n, {}]"))
        if points.dim() != 2:
            raise InputError(f"points must be [n, {inputs}], got {described(cloud)}")
    except InputError as error:
        raise InputError(f"cloud {index}: {error}") from error
    return points


def _floating(points: Tensor) -> Tensor:
    """In single precision at least: a mean of half precision is not one."""
    return points.float() if points.dtype in (torch.float16, torch.bfloat16) else points


def _check(points: Tensor, mask: Tensor | None, first: int) -> None:
    """Refuse clouds of which a prediction would say nothing."""
    real = torch.ones(points.shape[:2], dtype=torch.bool, device=points.device) if mask is None else mask
    empty = (~real.any(dim=1)).nonzero().flatten().tolist()
    odd = (~points.isfinite().all(dim=2) & real).any(dim=1).nonzero().flatten().tolist()
    if empty:
        raise InputError(f"cloud {first + empty[0]} has no point: leave it out")
    if odd:
        raise InputError(f"cloud {first + odd[0]} has numbers that are not finite: correct it, or leave it out")


def _in_pieces(compute: Callable[[Tensor, Tensor | None], Tensor], points: Tensor, mask: Tensor | None) -> Tensor:
    """The results for sets [B, n, d], a few at a time; of several sizes, those of one size after the other."""
    most = ROWS_AT_ONCE if points.device.type == "cpu" else MOST_ROWS
    if mask is None:
        return torch.cat([compute(piece, None) for piece in points.split(max(1, most // max(1, points.shape[1])))])
    lengths = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(dim=1)  # up to the last real point
    order = lengths.argsort(stable=True)
    results, sizes, start = [], lengths[order].tolist(), 0
    while start < len(sizes):
        stop = start + 1
        while stop < len(sizes) and (stop + 1 - start) * sizes[stop] <= most:
            stop += 1
        rows, largest = order[start:stop], max(1, sizes[stop - 1])
        real = mask[rows, :largest]
        results.append(compute(points[rows, :largest], None if bool(real.all()) else real))
        start = stop
    return torch.cat(results)[order.argsort()]


@contextmanager
def _last_inputs(model: nn.Module, record: bool) -> Iterator[list[Tensor]]:
    """Record the input [b, width] of the last linear layer, torch-geometric's included, inside this block."""
    rows: list[Tensor] = []
    weights = {layer: vars(layer).get("_parameters", {}).get("weight") for layer in model.modules() if record}
    linear = [layer for layer, weight in weights.items() if weight is not None and weight.dim() == 2]
    hooks = [
        layer.register_forward_pre_hook(lambda _, inputs: rows.append(inputs[0].detach().flatten(1).float()))
        for layer in linear[-1:]
    ]
    try:
        yield rows
    finally:
        for hook in hooks:
            hook.remove()
