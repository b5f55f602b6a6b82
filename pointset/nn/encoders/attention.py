"""SABs, and ISABs with inducing points (Lee et al., arXiv 1810.00825, eq. 8 to 10, 13 and 14)."""

from collections.abc import Callable
from functools import partial

from torch import nn

from pointset.configuration import AttentionOptions, InitialName
from pointset.nn.blocks import ISAB, SAB
from pointset.nn.layers import Masked
from pointset.nn.registry import register


@register("encoder", "sab", export=True, maps=True)
def self_attention(inputs: int, dim: int, layers: int | None, attention: AttentionOptions) -> list[nn.Module]:
    """SABs; two by default, as published."""
    return attention_layers(partial(SAB, dim=dim, options=attention), inputs, dim, layers, attention)


@register("encoder", "isab<m>", listed="isab16", export=True, maps=True)
def induced_attention(
    m: int, inputs: int, dim: int, layers: int | None, initial: InitialName, attention: AttentionOptions
) -> list[nn.Module]:
    """ISABs with m inducing points; two by default, as published."""
    block = partial(ISAB, dim=dim, inducing=m, options=attention, initial=initial)
    return attention_layers(block, inputs, dim, layers, attention)


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
