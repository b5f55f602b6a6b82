"""Pooling by multihead attention, with layers before and after it (Lee et al., arXiv 1810.00825, eq. 11, 12 and 15)."""

from typing import Any, ClassVar

from jaxtyping import Float
from torch import Tensor

from pointset.configuration import RELEASED, AttentionOptions, DecoderName, InitialName, SeedSource
from pointset.errors import PointsetError
from pointset.nn.blocks import PMA, SAB, rff
from pointset.nn.layers import Dropout
from pointset.nn.masks import Mask
from pointset.nn.modules import Maps, Pooling
from pointset.nn.registry import register


@register("pooling", "pma[<k>]")
class AttentionPool(Pooling):
    """Pooling by multihead attention, PMA_k(Z), and the layers after it.

    Dropout is first applied to the rows of Z. With decoder "released", a SAB follows PMA if k > 1. The authors ran this
    with k = 1. Decoder "rff" is their equation 15, rFF(SAB(PMA_k(Z))), where rFF is FC(d, ReLU), FC(d) on each of the k
    rows. The linear layer from the k rows to logits is not included.

    Z [B, n, dim] with a mask [B, n] (True at real rows) gives [B, k, dim].

    Args:
        k: number of seeds.
        dim: width d of the rows, a multiple of the number of heads.
        dropout: rate of the dropout on the rows.
        pool_seeds, initial, decoder: origin of the seeds, their initial values, and the layers after PMA; see
            `ModelOptions`.
        attention, pool_attention: options of the SAB, and of PMA.

    Raises:
        PointsetError: `norm` is "instance" and k = 1, which would set the single row to zero.

    Source:
        Lee et al., Set Transformer (arXiv 1810.00825), eq. 11, 12 and 15.

    Example:
        >>> pointset.nn.AttentionPool(4, 16)(torch.rand(2, 100, 16)).shape
        torch.Size([2, 4, 16])
    """

    options_used = ("dropout", "pool_seeds", "initial", "attention", "pool_attention", "decoder")
    export = True
    maps: ClassVar[Maps] = {"pma.mab": ("pools", "keys"), "sab.mab": ("self", "neither")}
    head = "linear"

    @classmethod
    def build(cls, options: Any, width: int, argument: Any = None) -> Pooling:
        seeds = options.pool_seeds, options.initial
        both = options.block_attention, options.pool_attention
        return cls(argument, width, options.dropout_rate, *seeds, *both, options.decoder)

    def __init__(
        self,
        k: int,
        dim: int,
        dropout: float = 0.0,
        pool_seeds: SeedSource = "trained",
        initial: InitialName = "normal",
        attention: AttentionOptions = RELEASED,
        pool_attention: AttentionOptions = RELEASED,
        decoder: DecoderName = "released",
    ) -> None:
        super().__init__()
        if k == 1 and attention.norm == "instance" and not attention.prenorm:
            remedy = "use several seeds, as in isab16-pma4, or prenorm, or norm=group"
            raise PointsetError(f"norm=instance turns a single pooled row into zeros: {remedy}")
        self.dropout = Dropout(dropout)
        self.pma = PMA(dim, k, pool_attention, pool_seeds, initial)
        self.sab = SAB(dim, dim, attention) if k > 1 or decoder == "rff" else None
        self.feed_forward = rff(dim, dim) if decoder == "rff" else None

    def forward(self, Z: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B k d"]:
        pooled = self.pma(self.dropout(Z), mask)
        for module in filter(None, (self.sab, self.feed_forward)):
            pooled = module(pooled)
        return pooled
