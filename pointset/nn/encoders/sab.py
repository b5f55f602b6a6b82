"""SABs: every row reads every other (Lee et al., arXiv 1810.00825, eq. 8 and 13)."""

from collections.abc import Callable
from functools import partial

from torch import nn

from pointset.configuration import AttentionOptions
from pointset.nn.blocks import SAB
from pointset.nn.registry import register
from pointset.nn.rowwise import Masked


@register("encoder", "sab", packed=True, export=True, maps=True)
def self_attention(inputs: int, dim: int, layers: int | None, attention: AttentionOptions) -> list[nn.Module]:
    """SABs; two by default, as published."""
    return attention_layers(partial(SAB, dim=dim, options=attention), inputs, dim, layers, attention)


def attention_layers(
    block: Callable[[int], nn.Module], inputs: int, dim: int, layers: int | None, attention: AttentionOptions
) -> list[nn.Module]:
    """Attention blocks of width `dim`, two by default as in the Set Transformer's appendix (point clouds).

    A linear layer precedes them if the first block cannot work on raw coordinates.
    """
    # Form "paper" adds the input to the output, so their widths must agree; with prenorm, raw coordinates would be
    # normalised before the first block.
    embed = attention.form == "paper" or attention.prenorm
    first: list[nn.Module] = [Masked(nn.Linear(inputs, dim))] if embed else []
    widths = [dim if embed else inputs, *[dim] * ((layers or 2) - 1)]
    return first + [block(width) for width in widths]
