"""The head of networks that label every point."""

from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import HeadNormName
from pointset.nn.dropout import Dropout
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.masks import zero_padding
from pointset.nn.norms import has_shift, make_norm


class PointHead(nn.Module):
    """Logits of every row from the row and the pooled vectors p of its set.

        logits(z) = W_2 dropout(act(norm(W_1 [z, p] + b_1))) + b_2

    The rows are concatenated with the vector of their set, as in the segmentation network of PointNet (Qi et al., arXiv
    1612.00593, section 4.2 and figure 2), which has two more hidden layers. W_1 [z, p] is computed as U z + V p.

    Args:
        width: width of the rows.
        pooled: width of the pooled vectors of a set, side by side.
        dim: width of the hidden layer.
        classes: number of logits.
        norm: norm of the hidden layer: "none", "layer" or "batch".
        activation: class of the activation.
        dropout: dropout of the hidden layer.
        pooled_dropout: dropout of the pooled vectors.

    Example:
        >>> head = pointset.nn.PointHead(16, 32, dim=64, classes=5)
        >>> head(torch.rand(2, 100, 16), torch.rand(2, 1, 32)).shape
        torch.Size([2, 100, 5])
    """

    def __init__(
        self,
        width: int,
        pooled: int,
        dim: int,
        classes: int,
        norm: HeadNormName = "none",
        activation: type[nn.Module] = nn.ReLU,
        dropout: float = 0.0,
        pooled_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.of_rows = nn.Linear(width, dim, bias=not has_shift(norm))
        self.of_set = nn.Sequential(nn.Flatten(), Dropout(pooled_dropout), nn.Linear(pooled, dim, bias=False))
        self.norm = make_norm(norm, dim)
        self.last = nn.Sequential(activation(), Dropout(dropout), nn.Linear(dim, classes))

    def forward(
        self, Z: Float[Tensor, "*rows d"], pooled: Float[Tensor, "B k d_pooled"], mask: Layout | None = None
    ) -> Float[Tensor, "*rows classes"]:
        """Return logits, in the order of the rows Z [B, n, d] or [N, d]; zeros for padded rows.

        Args:
            Z: the rows.
            pooled: the pooled vectors of each set.
            mask: bool [B, n], True at real rows; or a `Packed`.
        """
        of_set = self.of_set(pooled)
        of_set = of_set[mask.index(Z.device)] if isinstance(mask, Packed) else of_set[:, None]
        return zero_padding(self.last(self.norm(self.of_rows(Z) + of_set, mask)), mask)
