"""Attention rollout: attention through all layers, from the pooled vectors back to the points."""

from collections.abc import Sequence

import torch
from torch import Tensor

from pointset.errors import PointsetError
from pointset.explain.maps import AttentionMap


def rollout(maps: Sequence[AttentionMap]) -> Tensor:
    """Attention rollout (Abnar and Zuidema, arXiv 2005.00928, section 3), from each pooled vector back to the points.

    Heads are averaged, and half of each row passes through the residual: A' = 0.5 I + 0.5 A, where A is the product
    writes reads for an ISAB, and the map itself for a SAB. The rows of the pooling are multiplied by the A' of all
    blocks, from the last to the first.

    Rollout ignores values, feed-forward layers, norms, the real weight of the residual, coordinates that enter later
    layers, the outputs of earlier layers in a model with `outputs="all"`, and the other poolings of a join such as
    max+pma. It shows from where attention could have taken the content of a pooled vector, not what the prediction
    depends on: for that see `pointset.explain.occlusion`.

    Args:
        maps: all maps of a model on one cloud, in the order of `attention_maps`.

    Returns:
        [k, n]: for each of the k pooled vectors, the share of each point; rows sum to 1.

    Raises:
        PointsetError: the model does not pool by attention, the maps are of a batch, or they are not all the maps of
            one forward pass.

    Example:
        >>> from pointset.explain.rollout import rollout
        >>> shares = rollout(pointset.attention_maps(model, test.points[0]))
        >>> shares.shape, float(shares.sum().round(decimals=4))
        (torch.Size([1, 32]), 1.0)
    """
    if any(entry.weights.dim() != 3 for entry in maps):
        raise PointsetError("rollout needs the maps of one cloud, got a batch: give [entry[0] for entry in maps]")
    pooling = [index for index, entry in enumerate(maps) if entry.kind == "pools"]
    if len(pooling) != 1:
        raise PointsetError(f"rollout needs one map of kind 'pools', got {len(pooling)}: see critical_points for max")
    kinds = [(entry.kind, entry.layer.removesuffix(entry.kind)) for entry in maps]
    reads = {(index, block) for index, (kind, block) in enumerate(kinds) if kind == "reads"}
    writes = {(index - 1, block) for index, (kind, block) in enumerate(kinds) if kind == "writes"}
    for _, block in sorted(reads ^ writes):  # every ISAB has its two maps in succession
        raise PointsetError(
            f"{block}reads is not followed by {block}writes: rollout needs all maps of a model in their order; "
            "for the encoder dumlp, which writes back without attention, use occlusion"
        )
    for entry in maps:
        if (entry.weights.sum(dim=-1) - 1).abs().max() > 1e-3 or entry.weights.min() < 0:
            raise PointsetError(f"rollout needs sums of 1, and rows of {entry.layer} do not sum to 1: use occlusion")
    averaged = [entry.heads("mean").weights[0] for entry in maps]
    shares = averaged[pooling[0]]
    for entry, weights in zip(maps[pooling[0] + 1 :], averaged[pooling[0] + 1 :], strict=True):
        if entry.points_are == "neither":
            shares = 0.5 * shares + 0.5 * weights @ shares
    for entry, weights in reversed(list(zip(maps[: pooling[0]], averaged[: pooling[0]], strict=True))):
        if entry.kind == "writes":
            kept, shares = shares, shares @ weights  # [k, m]: shares of the inducing points
        elif entry.kind == "reads":
            shares = 0.5 * kept + 0.5 * shares @ weights
        else:
            shares = 0.5 * shares + 0.5 * shares @ weights
    return shares / torch.clamp(shares.sum(dim=1, keepdim=True), min=1e-12)
