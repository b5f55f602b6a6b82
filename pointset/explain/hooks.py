"""Recording of the attention weights of torch and torch-geometric modules by hooks that do not change outputs.

Recorded modules are `torch.nn.MultiheadAttention`, and `AttentionalAggregation` and `GlobalAttention` of
torch-geometric. The first is part of `nn.TransformerEncoder` and of the set attention of torch-geometric
(`SetTransformerAggregation`, `InducedSetAttentionBlock`, `PoolingByMultiheadAttention`).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.nn.modules import MapKind, Side

SIGNATURE = inspect.signature(nn.MultiheadAttention.forward)
AGGREGATION = "<class 'torch_geometric.nn.aggr.attention.AttentionalAggregation'>"
"""The class by name, so that torch-geometric need not be installed. `GlobalAttention` is the same class."""


class Recorded(NamedTuple):
    """The weights of one call of a module."""

    layer: str
    """The name of the module inside the model."""
    weights: Tensor
    """[B, heads, queries, keys], on the CPU."""
    is_self: bool
    """True if queries and keys are the same tensor."""


def hooked_modules(model: nn.Module) -> dict[str, nn.Module]:
    """Return the modules of a model whose attention weights hooks can record, by name."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention) or AGGREGATION in map(str, type(module).__mro__)
    }


@contextmanager
def recording_by_hooks(model: nn.Module, mask: Tensor | None, sets: int) -> Iterator[list[Recorded]]:
    """Record the attention weights of all calls inside this block.

    Args:
        model: any module.
        mask: bool [B, n], True at real points. It shows to which set each row of an aggregation belongs.
        sets: number B of sets.
    """
    records: list[Recorded] = []
    fast = torch.backends.mha.get_fastpath_enabled()
    with ExitStack() as stack:
        stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
        torch.backends.mha.set_fastpath_enabled(False)  # the fast path skips the attention module and its hooks
        for name, module in hooked_modules(model).items():
            if isinstance(module, nn.MultiheadAttention):
                handles = _record_attention(name, module, records)
            else:
                handles = [_record_aggregation(name, module, records, mask, sets)]
            for handle in handles:
                stack.callback(handle.remove)
        yield records


def _record_attention(name: str, module: nn.MultiheadAttention, records: list[Recorded]) -> list[Any]:
    """Make the module compute the weights of each head, but return to the caller only what the caller asked for."""
    asked: list[tuple[bool, bool, bool]] = []

    def before(_: nn.Module, arguments: Any, named: Any) -> tuple[Any, Any]:
        bound = SIGNATURE.bind(module, *arguments, **named)
        bound.apply_defaults()
        values = bound.arguments
        asked.append((values["need_weights"], values["average_attn_weights"], values["query"] is values["key"]))
        values.update(need_weights=True, average_attn_weights=False)
        return bound.args[1:], bound.kwargs

    def after(_: nn.Module, arguments: Any, outputs: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor | None]:
        attended, weights = outputs
        needed, averaged, is_self = asked.pop()
        records.append(Recorded(name, (weights if weights.dim() == 4 else weights[None]).detach().cpu(), is_self))
        if not needed:
            return attended, None
        return attended, weights.mean(dim=-3) if averaged else weights

    return [module.register_forward_pre_hook(before, with_kwargs=True), module.register_forward_hook(after)]


def _record_aggregation(name: str, module: Any, records: list[Recorded], mask: Tensor | None, sets: int) -> Any:
    """Compute the gates of an aggregation again, and record them as one query with one head per gate feature."""
    parameters = inspect.signature(module.forward)

    def after(_: nn.Module, arguments: Any, named: Any, output: Tensor) -> None:
        from torch_geometric.utils import softmax

        bound = parameters.bind(*arguments, **named)
        bound.apply_defaults()
        x, index, ptr, size, dim = (bound.arguments[key] for key in ("x", "index", "ptr", "dim_size", "dim"))
        gate = module.gate_nn(x) if module.gate_mlp is None else module.gate_mlp(x, batch=index, batch_size=size)
        weights = softmax(gate, index, ptr, size, dim).detach().cpu().flatten(0, -2)  # [rows, heads]
        if mask is not None and len(weights) == int(mask.sum()):
            padded = weights.new_zeros(mask.numel(), weights.shape[1])
            padded[mask.flatten().cpu()] = weights
            weights = padded
        weights = weights.unflatten(0, (sets, -1)) if len(weights) % sets == 0 else weights[None]
        records.append(Recorded(name, weights.transpose(1, 2)[:, :, None], False))

    return module.register_forward_hook(after, with_kwargs=True)


def kinds_by_size(records: Sequence[Recorded], sets: int, points: int) -> list[tuple[Recorded, MapKind, Side]]:
    """Return each record with its kind of map and the side of the points, inferred from the sizes of the weights.

    An attention over the points is of kind "reads" if the points later attend to its outputs. This is inferred from
    equal numbers of rows. Any other attention over the points is of kind "pools". Weights with a batch size other than
    `sets` are left out, with a warning that names the module.

    Raises:
        PointsetError: queries and keys are different tensors, but each of the two has one row per point.
    """
    kinds: list[tuple[Recorded, MapKind, Side]] = []
    for place, record in enumerate(records):
        batch, _, queries, keys = record.weights.shape
        if batch != sets:
            turned = ": its inputs are [n, B, d], set batch_first=True" if (batch, queries) == (points, sets) else ""
            warnings.warn(
                f"{record.layer} has attention weights {list(record.weights.shape)} that do not belong to "
                f"{sets} x {points} points: it is left out{turned}",
                UserWarning,
                stacklevel=3,
            )
        elif record.is_self or points not in (queries, keys):
            kinds.append((record, "self", "both" if keys == points else "neither"))
        elif queries == keys:
            raise PointsetError(f"{record.layer} has {points} queries and {points} keys: give another number of points")
        elif keys == points:
            later = [tuple(other.weights.shape[2:]) for other in records[place + 1 :]]
            kinds.append((record, "reads" if (points, queries) in later else "pools", "keys"))
        else:
            kinds.append((record, "writes", "queries"))
    return kinds
