"""A model called on a padded batch, without computing the padding."""

import torch
from torch import Tensor, nn

from pointset.data.batches import Batch, MixedBatch
from pointset.zoo.predicting import padded_logits


def logits_of(model: nn.Module, batch: Batch | MixedBatch, device: torch.device) -> Tensor:
    """What `model(points, mask)` gives on a device, float32 [B, classes]; see `padded_logits`."""
    mask = None if batch.mask is None else batch.mask.to(device)
    return padded_logits(model, batch.points.to(device), mask).float()
