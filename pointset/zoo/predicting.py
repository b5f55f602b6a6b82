"""From sets to predictions: `predict` for classes, `embed_rows` for embeddings.

Both take `PointSets` or batches. `prepared_batches` prepares a user's clouds and makes batches of them.
`padded_batches` makes batches of prepared clouds.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from numpy import ndarray
from torch import Tensor, nn

from pointset.data.batches import fixed_batches
from pointset.data.point_sets import PointSets
from pointset.data.preparation import is_one_shape
from pointset.data.ragged import pad_sets
from pointset.errors import PointsetError, described
from pointset.inputs import InputError, as_sets, call_model
from pointset.nn.layers import in_evaluation_mode

LEAST_PROBABILITY = 0.5
"""A prediction with a smaller probability has low confidence: the other classes together are more probable."""
SETS_AT_ONCE = 64
"""Default number of sets per batch."""
ROWS_AT_ONCE = 2**14
"""Maximum number of points per call of a model in evaluation on a CPU, so that the outputs of a layer stay in the CPU
cache. With 16 sets of 1,024 points per call, evaluation takes 0.6 to 0.9 times as long as with 64 sets (with ISABs,
0.97 times)."""
MOST_ROWS, MOST_PAIRS = 2**16, 10**8
"""Maximum numbers of points and of pairs of points in a batch of clouds of different sizes (models may store pairs)."""

Clouds = Any
"""An array or a tensor [n, d] or [B, n, d]; a list or an object array of B clouds [n_i, d]; an argument of
`pointset.data.prepare`, such as the path of a file, or a list of these; or `PointSets`."""
Sets = PointSets | Iterable[tuple[Any, ...]]
"""`PointSets` (with a fixed subset of the points of each cloud), or batches of prepared sets: tuples of points
[b, n, d], a mask and any further elements."""


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictions for N sets."""

    logits: Float[Tensor, "N classes"]
    """Logits in float32, on the device of the model."""
    temperature: float = 1.0
    """Probabilities are softmax(logits / temperature)."""
    last_rows: Float[Tensor, "N width"] | None = None
    """The input of the model's last linear layer; None if it was not requested or there is no such layer."""
    distances: Float[Tensor, " N"] | None = None
    """Distance of each set to the training shapes (see `pointset.zoo.out_of_distribution`): 1 is typical of held-out
    shapes, more than 2 is out of distribution. None if the model has no statistics of its training shapes."""

    @property
    def low_confidence(self) -> Bool[ndarray, " N"]:
        """True where the largest probability is less than 50 % (times the distance, if the distance is above 1)."""
        factors = 1.0 if self.distances is None else self.distances.numpy().clip(min=1)
        return self.probabilities.max(axis=1, initial=0.0) < LEAST_PROBABILITY * factors

    @property
    def probabilities(self) -> Float[ndarray, "N classes"]:
        """Probabilities of the classes, in double precision."""
        return (self.logits.double() / self.temperature).softmax(dim=1).cpu().numpy()


def predict(model: nn.Module, sets: Sets, *, batch_size: int = SETS_AT_ONCE, last_rows: bool = False) -> Prediction:
    """Predict the classes of sets on the model's device, in evaluation mode, without gradients.

    Args:
        model: called as `model(points [B, n, d], mask) -> logits [B, classes]`.
        sets: `PointSets`, or batches.
        batch_size: number of sets per batch of `PointSets`; it changes results by rounding errors only.
        last_rows: also return the input of the last linear layer.

    Example:
        >>> from pointset.zoo.predicting import predict
        >>> prediction = predict(model, test)
        >>> prediction.logits.shape, prediction.probabilities.sum(axis=1).round(6).tolist()[:2]
        (torch.Size([8, 2]), [1.0, 1.0])
    """
    temperature, distribution = getattr(model, "temperature", 1.0), getattr(model, "training_distribution", None)
    with last_inputs(model, last_rows or distribution is not None) as recorded:

        def compute(points: Tensor, mask: Tensor | None) -> list[Tensor]:
            recorded.clear()
            return [call_model(model, points, mask), *recorded[-1:]]

        logits, *rows = _results(model, sets, batch_size, compute)
    last = rows[0] if rows else None
    distances = None if distribution is None or last is None else distribution.distances(last)
    return Prediction(logits, temperature, last, distances)


def embed_rows(model: nn.Module, sets: Sets, *, batch_size: int = SETS_AT_ONCE) -> Float[Tensor, "N d"]:
    """Return the embeddings that `model.embed_sets` computes, float32 on the model's device; see `predict`."""
    embed: Any = getattr(model, "embed_sets", None)
    if embed is None:
        raise InputError(f"a {type(model).__name__} has no embedding: use a model with an encoder and a pooling")
    return _results(model, sets, batch_size, lambda points, mask: [embed(points, mask)])[0]


def prepared_batches(
    model: Any, clouds: Clouds, mask: Any = None, batch_size: int = SETS_AT_ONCE, up: str | None = None
) -> Sets:
    """Return batches of a user's clouds, which `model.prepare` prepares; `PointSets` are returned unchanged."""
    if isinstance(clouds, PointSets):
        if up is not None:
            raise InputError("up is not for PointSets, whose shapes were rotated when they were loaded: leave it out")
        clouds.require_inputs(model)
        return clouds
    listed = list_clouds(clouds, mask, model.inputs)
    if not len(listed):
        raise InputError("clouds to predict are missing: give at least one")

    def prepared() -> Iterator[Tensor]:
        for index, cloud in enumerate(listed):
            try:
                yield model.prepare(cloud, name=f"cloud {index}", up=up).points
            except PointsetError as error:
                raise InputError(f"cloud {index}: {error}") from error

    return padded_batches(prepared(), batch_size)


def padded_batches(clouds: Iterable[Tensor], batch_size: int = SETS_AT_ONCE) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yield padded batches of clouds [n_i, d] with at most `MOST_ROWS` points and `MOST_PAIRS` pairs."""
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
    """Return a result [B, ...] as an array; if a cloud is a tensor, as a tensor on the device of the first one."""
    clouds = clouds if isinstance(clouds, Sequence | ndarray) else [clouds]
    tensor = next((cloud for cloud in clouds if isinstance(cloud, Tensor)), None)
    return values.cpu().numpy() if tensor is None else values.to(tensor.device)


def _results(
    model: nn.Module, sets: Sets, batch_size: int, compute: Callable[[Tensor, Tensor | None], list[Tensor]]
) -> list[Tensor]:
    """Return the results of `compute` for all sets, in float32 on the model's device."""
    device = next((parameter.device for parameter in model.parameters()), torch.device("cpu"))
    if isinstance(sets, PointSets):
        sets = fixed_batches(sets.with_local_features(getattr(model, "local_features", "none")), batch_size)
    with torch.inference_mode(), in_evaluation_mode(model):
        moved = ((points.to(device), None if mask is None else mask.to(device)) for points, mask, *_ in sets)
        each = [_in_pieces(compute, points, mask) for points, mask in moved]
    return [torch.cat(parts).float() for parts in zip(*each, strict=True)]


def list_clouds(clouds: Clouds, mask: Any, inputs: int) -> Sequence[Any]:
    """Return a list of clouds; for a batch with a mask, each cloud has only its real points."""
    if isinstance(clouds, ndarray) and clouds.dtype.kind == "O" and clouds.ndim == 1:
        clouds = list(clouds)
    if is_one_shape(clouds):
        clouds = [clouds]
    if hasattr(clouds, "to_list"):  # a Series of pandas
        clouds = clouds.to_list()
    if isinstance(clouds, Sequence) and not isinstance(clouds, bytes):
        if mask is not None:
            raise InputError("mask is for a batch [B, n]: leave it out, clouds of a list have only real points")
        return clouds
    if not isinstance(clouds, Tensor | ndarray):
        kinds = f"an array, a tensor or a list of clouds [n, {inputs}], or a file"
        raise InputError(f"points must be {kinds}, got {described(clouds)}")
    points, real = as_sets(clouds, mask, inputs, None)
    return list(points) if real is None else [cloud[rows] for cloud, rows in zip(points, real, strict=True)]


def _in_pieces(
    compute: Callable[[Tensor, Tensor | None], list[Tensor]], points: Tensor, mask: Tensor | None
) -> list[Tensor]:
    """Return the results for sets [B, n, d], computed for a few sets at a time; sets with a mask are sorted by size."""
    most = ROWS_AT_ONCE if points.device.type == "cpu" else MOST_ROWS
    if mask is None:
        each = [compute(piece, None) for piece in points.split(max(1, most // max(1, points.shape[1])))]
        return [torch.cat(parts) for parts in zip(*each, strict=True)]
    lengths = (mask * torch.arange(1, mask.shape[1] + 1, device=mask.device)).amax(dim=1)  # up to the last real point
    order = lengths.argsort(stable=True)
    each, sizes, start = [], lengths[order].tolist(), 0
    while start < len(sizes):
        stop = start + 1
        while stop < len(sizes) and (stop + 1 - start) * sizes[stop] <= most:
            stop += 1
        rows, largest = order[start:stop], max(1, sizes[stop - 1])
        real = mask[rows, :largest]
        each.append(compute(points[rows, :largest], None if bool(real.all()) else real))
        start = stop
    return [torch.cat(parts)[order.argsort()] for parts in zip(*each, strict=True)]


@contextmanager
def last_inputs(model: nn.Module, record: bool) -> Iterator[list[Tensor]]:
    """Record the inputs [b, width] of the last linear layer (of torch or torch-geometric) inside this block."""
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
