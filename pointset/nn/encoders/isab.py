"""ISABs: the rows interact through m inducing points (Lee et al., arXiv 1810.00825, eq. 9, 10 and 14)."""

from functools import partial

from torch import nn

from pointset.configuration import AttentionOptions, InitialName
from pointset.nn.blocks import ISAB
from pointset.nn.encoders.sab import attention_layers
from pointset.nn.registry import register


@register("encoder", "isab<m>", listed="isab16", packed=True, export=True, maps=True)
def induced_attention(
    m: int, inputs: int, dim: int, layers: int | None, initial: InitialName, attention: AttentionOptions
) -> list[nn.Module]:
    """ISABs with m inducing points; two by default, as published."""
    block = partial(ISAB, dim=dim, inducing=m, options=attention, initial=initial)
    return attention_layers(block, inputs, dim, layers, attention)
