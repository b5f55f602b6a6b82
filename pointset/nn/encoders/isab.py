"""Encoder of ISABs (Lee et al., arXiv 1810.00825, section 3.2)."""

from typing import Any

from pointset.configuration import RELEASED, AttentionOptions, InitialName
from pointset.nn.blocks import ISAB
from pointset.nn.encoders.sab import attention_layers
from pointset.nn.modules import Encoder
from pointset.nn.registry import register


@register("encoder", "isab<m>", listed="isab16")
class ISABEncoder(Encoder):
    """ISABs (two by default, as in the Set Transformer's experiments) with m inducing points each. Cost O(n m).

    X [B, n, inputs] with a mask [B, n] (True at real points) gives [B, n, dim].

    Args:
        m: number of inducing points.
        inputs, dim, layers: inputs per point, width of the blocks, and number of blocks.
        options: heads, norm, score, ...; see `AttentionOptions`.
        initial: initial inducing points; see `ModelOptions`.

    Source:
        Lee et al., Set Transformer (arXiv 1810.00825), eq. 9, 10 and 14.

    Example:
        >>> pointset.nn.ISABEncoder(4, 3, 16)(torch.rand(2, 100, 3)).shape
        torch.Size([2, 100, 16])
    """

    options_used = ("layers", "initial", "attention")
    export = True
    maps = ISAB.maps

    @classmethod
    def build(cls, options: Any, inputs: int, pooling: Any, argument: Any = None) -> Encoder:
        return cls(argument, inputs, options.dim, options.layers or 2, options.block_attention, options.initial)

    def __init__(
        self,
        m: int,
        inputs: int,
        dim: int,
        layers: int = 2,
        options: AttentionOptions = RELEASED,
        initial: InitialName = "normal",
    ) -> None:
        blocks = attention_layers(lambda d: ISAB(d, dim, m, options, initial), inputs, dim, layers, options)
        super().__init__(blocks)
