"""Encoder of SABs (Lee et al., arXiv 1810.00825, section 3.1)."""

from collections.abc import Callable
from typing import Any

from torch import nn

from pointset.configuration import RELEASED, AttentionOptions, check_counts
from pointset.nn.blocks import SAB
from pointset.nn.layers import Masked
from pointset.nn.modules import Encoder
from pointset.nn.registry import register


def attention_layers(
    block: Callable[[int], nn.Module], inputs: int, dim: int, layers: int, attention: AttentionOptions
) -> list[nn.Module]:
    """Return attention blocks of width `dim`. With form "paper" or `prenorm`, a linear layer precedes them.

    Form "paper" adds the input to the output, so both need the same width. With `prenorm`, the first block would
    otherwise normalise raw coordinates.
    """
    check_counts(inputs=inputs, dim=dim, layers=layers)
    embed = attention.form == "paper" or attention.prenorm
    first: list[nn.Module] = [Masked(nn.Linear(inputs, dim))] if embed else []
    widths = [dim if embed else inputs, *[dim] * (layers - 1)]
    return first + [block(width) for width in widths]


@register("encoder", "sab")
class SABEncoder(Encoder):
    """SABs (two by default, as in the Set Transformer's experiments on point clouds). Cost O(n^2).

    X [B, n, inputs] with a mask [B, n] (True at real points) gives [B, n, dim].

    Args:
        inputs, dim, layers: inputs per point, width of the blocks, and number of blocks.
        options: heads, norm, score, ...; see `AttentionOptions`.

    Source:
        Lee et al., Set Transformer (arXiv 1810.00825), eq. 8 and 13.

    Example:
        >>> pointset.nn.SABEncoder(3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    options_used = ("layers", "attention")
    export = True
    maps = SAB.maps

    @classmethod
    def build(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        return cls(inputs, options.dim, options.layers or 2, options.block_attention)

    def __init__(self, inputs: int, dim: int, layers: int = 2, options: AttentionOptions = RELEASED) -> None:
        super().__init__(attention_layers(lambda width: SAB(width, dim, options), inputs, dim, layers, options))
