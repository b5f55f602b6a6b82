"""A model called on a padded batch, without computing the padding."""

import torch
from torch import Tensor, nn

from pointset.data.batches import Batch, MixedBatch


def logits_of(model: nn.Module, batch: Batch | MixedBatch, device: torch.device) -> Tensor:
    """What `model(points, mask)` gives on a device, float32 [B, classes].

    On a CPU a padded batch goes through `model.packed`, where the model has it: equal to rounding, except for the
    random numbers of dropout of rows. On a GPU the model is called with the padding: the many small products of packed
    sets are probably slower there, which has not been measured.
    """
    points, mask = batch.points, batch.mask
    if mask is None or device.type != "cpu" or not _packs(model):
        return model(points.to(device), None if mask is None else mask.to(device)).float()
    return model.packed(points[mask], mask.nonzero()[:, 0], len(points)).float()  # type: ignore[operator]


def _packs(model: nn.Module) -> bool:
    """True if one class wrote `packed` and `forward`: a subclass may have changed `forward` alone."""
    author = next(kind for kind in type(model).__mro__ if "forward" in vars(kind))
    return "packed" in vars(author) and not (model._forward_hooks or model._forward_pre_hooks)
