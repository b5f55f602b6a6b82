"""Predictions of a classifier on clouds as a user has them: one, a batch, or a list of clouds of any sizes."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pointset.data.batches import Batch, MixedBatch
from pointset.data.normalize import center_standardize, is_standardized, normalization
from pointset.inputs import InputError, as_mask, as_points, described
from pointset.nn.fast.torch_private import has_hooks
from pointset.nn.modes import in_evaluation_mode

ROWS_AT_ONCE = 2**14
"""Rows of the sets that go through a model together in evaluation on a CPU. Of 64 sets of 1,000 points every layer
writes 16 to 64 MB, which the next reads from memory: sixteen at a time take 0.6 to 0.9 of that time, ISABs 0.97. Eight
at a time take as long, and ISABs 1.1."""

Clouds = Any
"""[n, d], [B, n, d], or a list or an array of objects of B clouds [n_i, d]: arrays or tensors of numbers."""


def padded_rows(model: nn.Module, points: Tensor, mask: Tensor | None) -> Tensor:
    """What `model.embed_sets(points, mask)` gives, a few sets at a time."""
    embed: Any = getattr(model, "embed_sets", None)
    if embed is None:
        raise InputError(f"a {type(model).__name__} has no embedding: use a model with an encoder and a pooling")
    together = max(1, ROWS_AT_ONCE // max(1, points.shape[1]))
    masks = [None] * len(points) if mask is None else mask.split(together)
    return torch.cat([embed(*pair) for pair in zip(points.split(together), masks, strict=False)])


def predicted_logits(
    model: nn.Module,
    X: Clouds,
    mask: Any = None,
    *,
    normalize: str = "none",
    batch_size: int = 64,
    compute: Callable[[nn.Module, Tensor, Tensor | None], Tensor] | None = None,
) -> Tensor:
    """Logits [B, classes] of clouds, on the model's device, in evaluation mode, without gradients.

    Args:
        model: called as `model(points [B, n, d], mask)`, with `inputs` d.
        X: the clouds.
        mask: bool [B, n] of a batch, True at real points.
        normalize: of `pointset.data.normalize`; done here to each cloud's coordinates, its first three columns.
        batch_size: clouds at a time; does not change the result beyond rounding.
        compute: what to compute of a batch; None means `padded_logits`.

    Raises:
        InputError: they are not clouds of d numbers, or one of them has no point or is not finite; it is named.
    """
    change = normalization(normalize)
    like = next(model.parameters())
    found = []
    with torch.no_grad(), in_evaluation_mode(model):
        for first, points, real in _batches(X, mask, model.inputs, batch_size):  # type: ignore[arg-type]
            _check(points, real, first)
            if normalize != "none":
                points = torch.cat([_moved(change, points[..., :3], real), points[..., 3:]], dim=2)
            points, real = points.to(like), None if real is None else real.to(like.device)
            found.append((compute or padded_logits)(model, points, real).float())
    return torch.cat(found)


def _moved(change: Callable[[Tensor, Tensor | None], Tensor], points: Tensor, mask: Tensor | None) -> Tensor:
    """Normalised clouds; those that `standardize` has normalised stay where it has put them."""
    moved = change(points, mask)
    if change is not center_standardize:
        return moved
    return torch.where(is_standardized(points, mask)[:, None, None], points, moved)


def _batches(X: Clouds, mask: Any, inputs: int, size: int) -> Iterator[tuple[int, Tensor, Tensor | None]]:
    """The place of the first cloud, clouds [b, n, d] of a float type, and their mask; of one size or padded."""
    X = _listed(X)
    if isinstance(X, Tensor | np.ndarray):
        whole = _floating(as_points(X, inputs, None))
        if whole.dim() not in (2, 3):
            raise InputError(f"points must be [B, n, {inputs}] or, of one cloud, [n, {inputs}], got {described(X)}")
        real = as_mask(mask, whole)
        whole, real = (whole, real) if whole.dim() == 3 else (whole[None], None if real is None else real[None])
        for first in range(0, len(_some(whole)), size):
            part = slice(first, first + size)
            yield first, whole[part], None if real is None else real[part]
        return
    if not isinstance(X, Sequence) or isinstance(X, str | bytes):
        raise InputError(f"points must be an array, a tensor or a list of clouds [n, {inputs}], got {described(X)}")
    if mask is not None:
        raise InputError("mask is for a batch [B, n]: leave it out, clouds of a list have only real points")
    clouds = [_cloud(cloud, index, inputs) for index, cloud in enumerate(_some(X))]
    for first in range(0, len(clouds), size):
        part_of = clouds[first : first + size]
        sizes = torch.tensor([len(cloud) for cloud in part_of])
        points = torch.nn.utils.rnn.pad_sequence(part_of, batch_first=True)
        padded = torch.arange(points.shape[1]) < sizes[:, None]
        yield first, points, None if padded.all() else padded.to(points.device)


def _listed(X: Clouds) -> Any:
    """An array of objects, such as a column of ragged clouds, as a list."""
    return list(X) if isinstance(X, np.ndarray) and X.dtype.kind == "O" and X.ndim == 1 else X


def as_given(found: Tensor, X: Clouds) -> Any:
    """A result [B, ...] as an array; if one of the clouds is a tensor, as a tensor on the device of that."""
    X = _listed(X)
    tensor = next((one for one in ([X] if isinstance(X, Tensor) else X) if isinstance(one, Tensor)), None)
    return found.cpu().numpy() if tensor is None else found.to(tensor.device)


def _some(clouds: Any) -> Any:
    if not len(clouds):
        raise InputError("there is no cloud to predict: give at least one")
    return clouds


def _cloud(given: Any, index: int, inputs: int) -> Tensor:
    try:
        points = _floating(as_points(given, inputs, None, "[n, {}]"))
        if points.dim() != 2:
            raise InputError(f"points must be [n, {inputs}], got {described(given)}")
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


def padded_logits(model: nn.Module, points: Tensor, mask: Tensor | None) -> Tensor:
    """What `model(points, mask)` gives, where points and model are on one device.

    On a CPU a padded batch goes through `model.packed`, where the model has it: equal to rounding, except for the
    random numbers of dropout of rows. Without gradients a large batch goes in pieces. On a GPU the model is called with
    the padding: the many small products of packed sets are probably slower there, which has not been measured.
    """
    if mask is None:
        together = max(1, ROWS_AT_ONCE // max(1, points.shape[1]))
        if len(points) > together and _may_be_cut(model, points):
            return torch.cat([model(part, None) for part in points.split(together)])
    elif points.device.type == "cpu" and _packs(model):
        return model.packed(points[mask], mask.nonzero()[:, 0], len(points))  # type: ignore[operator]
    return model(points, mask)


def logits_of(model: nn.Module, batch: Batch | MixedBatch, device: torch.device) -> Tensor:
    """What `model(points, mask)` gives for a batch on a device, float32 [B, classes]; see `padded_logits`."""
    mask = None if batch.mask is None else batch.mask.to(device)
    return padded_logits(model, batch.points.to(device), mask).float()


def _may_be_cut(model: nn.Module, points: Tensor) -> bool:
    """True on a CPU, where each set is on its own: batch norm uses what it has learned, and nobody counts calls."""
    return points.device.type == "cpu" and not (model.training or torch.is_grad_enabled() or has_hooks(model))


def _packs(model: nn.Module) -> bool:
    """True if one class wrote `packed` and `forward`: a subclass may have changed `forward` alone."""
    author = next(kind for kind in type(model).__mro__ if "forward" in vars(kind))
    return "packed" in vars(author) and not (model._forward_hooks or model._forward_pre_hooks)
