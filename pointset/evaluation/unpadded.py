"""A model called on a padded batch, without doing the work of the padding."""

import torch
from torch import Tensor, nn

from pointset.data.batches import Batch


def logits_of(model: nn.Module, batch: Batch, device: torch.device) -> Tensor:
    """What `model(points, mask)` gives on a device, float32 [B, classes].

    Where there is padding, the model is called by way of `model.packed`, if it has that: equal to rounding, but for the
    random numbers of dropout of rows. On a GPU it is called with the padding: there the many small products of packed
    sets are likely to take longer, and nobody has measured it.
    """
    points, mask = batch.points, batch.mask
    if mask is None or device.type != "cpu" or not _packs(model):
        return model(points.to(device), None if mask is None else mask.to(device)).float()
    return model.packed(points[mask], mask.nonzero()[:, 0], len(points)).float()  # type: ignore[operator]


def _packs(model: nn.Module) -> bool:
    """True if one class wrote `packed` and `forward`: a subclass may have changed `forward` alone."""
    author = next(kind for kind in type(model).__mro__ if "forward" in vars(kind))
    return "packed" in vars(author) and not (model._forward_hooks or model._forward_pre_hooks)
