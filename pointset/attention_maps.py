"""Attention maps as data: who reads what, for every attention of a model.

This module stays light: `pointset.attention_maps` is this module's function, and the package loads it at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pointset.errors import PointsetError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from pointset.nn.attention import Multihead

Kind = Literal["reads", "writes", "pools", "self"]


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """The weights of one attention over a batch of sets. Every row sums to 1 over the keys.

    - "reads": each inducing point (query) over the points (keys);
    - "writes": each point (query) over the inducing points (keys);
    - "pools": each seed (query) over the points (keys);
    - "self": each element over the elements, of the set itself or of the pooled seeds.
    """

    layer: str
    """The module's name inside the model, such as "encoder.0.reads"."""
    kind: Kind
    weights: Tensor
    """[B, heads, queries, keys], on the CPU; padded keys have exactly 0."""


def attention_maps(model: nn.Module, points: Tensor, mask: Tensor | None = None) -> list[AttentionMap]:
    """Run a model once and return one map per attention in it, in the order of the computation.

    Args:
        model: any module whose attention is made of this package's blocks; it is not changed.
        points: one cloud [n, 3] or a batch [B, n, 3].
        mask: [n] or [B, n], True at real points.

    Raises:
        PointsetError: the model has no attention.
    """
    import torch

    if points.dim() == 2:
        points, mask = points.unsqueeze(0), None if mask is None else mask.unsqueeze(0)
    was_training = model.training
    try:
        with torch.no_grad(), _recording(model.eval()) as records:
            if not records:
                raise PointsetError(f"{type(model).__name__} has no attention to look at: try one such as isab16-pma")
            model(points, mask)
    finally:
        model.train(was_training)
    kinds = _kinds(model)
    return [AttentionMap(layer, kinds[layer], record[0].cpu()) for layer, record in records.items() if record]


@contextmanager
def _recording(model: nn.Module) -> Iterator[dict[str, list[Tensor]]]:
    """Let every attention keep its weights inside this block; the keys are the names of the MABs."""
    attentions = dict(_attentions(model))
    records: dict[str, list[Tensor]] = {}
    for name, attention in attentions.items():
        attention.record = records[name] = []
    try:
        yield records
    finally:
        for attention in attentions.values():
            attention.record = None


def _attentions(model: nn.Module) -> Iterator[tuple[str, Multihead]]:
    from pointset.nn.attention import Multihead

    for name, module in model.named_modules():
        if isinstance(module, Multihead):
            yield name.removesuffix(".multihead"), module


def _kinds(model: nn.Module) -> dict[str, Kind]:
    """What each MAB of the model does, told by the block that holds it; a MAB of the user's own counts as "self"."""
    from pointset.nn.blocks import ISAB, PMA

    kinds: dict[str, Kind] = {name: "self" for name, _ in _attentions(model)}
    for name, module in model.named_modules():
        prefix = f"{name}." if name else ""
        if isinstance(module, ISAB):
            kinds |= {f"{prefix}reads": "reads", f"{prefix}writes": "writes"}
        elif isinstance(module, PMA):
            kinds[f"{prefix}mab"] = "pools"
    return kinds
