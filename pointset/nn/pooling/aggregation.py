"""The aggregations of torch-geometric as poolings, with the same names: "softmax", "powermean", "set2set", ..."""

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from pointset.errors import PointsetError, quoted
from pointset.nn.blocks import rff
from pointset.nn.modules import OneRowPool, Pooling
from pointset.nn.registry import register

AGGREGATIONS = (
    *("attentional", "deepsets", "graphmultisettransformer", "max", "mean", "median", "min", "mul", "powermean"),
    *("quantile", "set2set", "settransformer", "softmax", "sort", "std", "sum", "var", "variancepreserving"),
)
"""Aggregations of sets. torch-geometric has others, which depend on the order of rows or other sets of the batch."""
QUARTILES = [0.25, 0.5, 0.75]
"""Quantiles q that are exact in binary. torch-geometric adds q * (n - 1) to the row's index in the batch in float32, so
the rounding error of a q such as 0.1 would depend on this index."""
KEPT_ROWS = 16
"""Number of rows that "sort" keeps, and of seeds in the first stage of "graphmultisettransformer"."""


@register("pooling", "aggr.<name>", listed="aggr.softmax")
class AggregationPool(OneRowPool):
    """An aggregation of torch-geometric as a pooling: Z [B, n, d], mask [B, n] -> [B, 1, d'].

    Only real rows are aggregated. An empty set gives zeros. The width d' depends on the aggregation: d for most, 2 d
    for "set2set", 3 d for "quantile", 16 d for "sort".

    Some aggregations need arguments, or have trained parameters only with arguments. These are:

    - `softmax`, `powermean`: `learn=True`, one trained inverse temperature or power, initially 1 (Li et al., arXiv
      2006.07739). The power mean is defined for positive numbers, so the paper applies ReLU + eps. torch-geometric
      instead clamps the rows, and then the mean of their powers, to [1e-4, 100]. Negative features become 1e-4.
    - `set2set`: 3 processing steps (Vinyals et al., arXiv 1511.06391).
    - `deepsets`: two layers before the sum and two after it.
    - `attentional`: a gate with two layers.
    - `quantile`: the three quartiles. (`median` has no argument and is the lower of two middle values.)
    - `settransformer`: `heads` heads. It contains a SAB over all rows, so it is more than a pooling.
    - `graphmultisettransformer`: `heads` heads, and 16 seeds in the first stage.
    - `sort`: 16 rows, those with the largest last feature, concatenated.

    Args:
        name: name for `torch_geometric.nn.resolver.aggregation_resolver`.
        dim: width d of the rows.
        heads: number of heads, a divisor of `dim`, for aggregations with multihead attention.

    Raises:
        PointsetError: torch-geometric has no such aggregation of sets.

    Example:
        >>> pointset.nn.AggregationPool("set2set", 16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 1, 32])
    """

    options_used = ("heads",)
    no_decay = ("ind", "seed")  # in torch-geometric's set transformers

    @classmethod
    def check_argument(cls, argument: str) -> None:
        """Raise a PointsetError if there is no such aggregation."""
        if argument not in AGGREGATIONS:
            wrong = f"{quoted(argument)} is not an aggregation of sets of torch-geometric"
            raise PointsetError(f"{wrong}: choose from {', '.join(AGGREGATIONS)}")

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        return cls(argument, width, options.attention.heads)

    def __init__(self, name: str, dim: int, heads: int = 4) -> None:
        super().__init__()
        self.check_argument(name)
        from torch_geometric.nn.resolver import aggregation_resolver

        self.aggregation = aggregation_resolver(name, **_arguments(name, dim, heads))

    def pooled(self, Z: Float[Tensor, "B n d"], mask: Bool[Tensor, "B n"] | None = None) -> Float[Tensor, "B 1 e"]:
        sets = torch.arange(Z.shape[0], device=Z.device)
        if mask is None:
            # Not `repeat_interleave`: torch 2.13 exports it to wrong ONNX if the number of repeats is dynamic.
            rows, index = Z.flatten(0, 1), sets[:, None].expand(Z.shape[:2]).flatten()
            return self.aggregation(rows, index, dim_size=Z.shape[0]).unsqueeze(1)
        # An empty set gets one row of zeros: without it, some aggregations would read a row of another set.
        first = torch.arange(mask.shape[1], device=Z.device) == 0
        keep = mask | (first & ~mask.any(dim=1, keepdim=True))
        index = sets.repeat_interleave(keep.sum(dim=1))
        return self.aggregation(Z[keep], index, dim_size=Z.shape[0]).unsqueeze(1)


def _arguments(name: str, dim: int, heads: int) -> dict[str, Any]:
    """Return the arguments of an aggregation for rows of width `dim`; see `AggregationPool`."""
    if name == "deepsets":
        return {"local_nn": rff(dim, dim), "global_nn": rff(dim, dim)}
    if name == "attentional":  # a bias of the gate's last layer would cancel in the softmax
        return {"gate_nn": nn.Sequential(nn.Linear(dim, dim), nn.ReLU(), nn.Linear(dim, 1, bias=False))}
    others: dict[str, dict[str, Any]] = {
        "softmax": {"learn": True},
        "powermean": {"learn": True},
        "set2set": {"in_channels": dim, "processing_steps": 3},
        "quantile": {"q": QUARTILES},
        "sort": {"k": KEPT_ROWS},
        "settransformer": {"channels": dim, "heads": heads},
        "graphmultisettransformer": {"channels": dim, "k": KEPT_ROWS, "heads": heads},
    }
    return others.get(name, {})
