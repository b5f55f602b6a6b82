"""SABs, and ISABs with inducing points (Lee et al., arXiv 1810.00825, eq. 8 to 10, 13 and 14)."""

from collections.abc import Callable
from typing import Any

from torch import nn

from pointset.configuration import AttentionOptions
from pointset.nn.blocks import ISAB, SAB
from pointset.nn.layers import Masked
from pointset.nn.parts import Encoder
from pointset.nn.registry import register


class AttentionLayers(Encoder):
    """Attention blocks of width `dim`, two by default as in the Set Transformer's appendix (point clouds).

    A linear layer precedes them if the first block cannot work on raw coordinates.
    """

    export = True

    def __init__(
        self, block: Callable[[int], nn.Module], inputs: int, dim: int, layers: int | None, attention: AttentionOptions
    ) -> None:
        # Form "paper" adds the input to the output, so their widths must agree; with prenorm, raw coordinates would be
        # normalised before the first block.
        embed = attention.form == "paper" or attention.prenorm
        first: list[nn.Module] = [Masked(nn.Linear(inputs, dim))] if embed else []
        widths = [dim if embed else inputs, *[dim] * ((layers or 2) - 1)]
        super().__init__(first + [block(width) for width in widths])


@register("encoder", "sab")
class SelfAttentionLayers(AttentionLayers):
    """SABs; two by default, as published."""

    reads = ("layers", "attention")
    maps = SAB.maps

    @classmethod
    def make(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        """Build it from the options of attention."""
        attention = options.attention()
        return cls(lambda width: SAB(width, options.dim, attention), inputs, options.dim, options.layers, attention)


@register("encoder", "isab<m>", listed="isab16")
class InducedAttentionLayers(AttentionLayers):
    """ISABs with m inducing points; two by default, as published."""

    reads = ("layers", "initial", "attention")
    maps = ISAB.maps

    @classmethod
    def make(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        """Build it from m, and the options of attention and of inducing points."""
        attention = options.attention()

        def block(width: int) -> ISAB:
            return ISAB(width, options.dim, argument, attention, options.initial)

        return cls(block, inputs, options.dim, options.layers, attention)
