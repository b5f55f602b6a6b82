"""Scores: functions from queries and keys to logits, the `score` of Att(Q, K, V; score, weights).

    dot         s Q_j K_j^T
    bilinear    s Q_j W_j^T K_j^T           ("multiplicative"; Luong et al., arXiv 1508.04025, section 3.1, "general")
    additive    w_j^T relu(W_j [K_j; Q_j])  (Bahdanau et al., arXiv 1409.0473, appendix A.1.2, with tanh)

for head j, with Q [_, h, n, c], K [B, h, m, c] and logits [B, h, n, m]. The first two are *linear*: they are matrix
products, which attention can compute in any order. All logits are divided by a temperature. A trained temperature has
one value per head, stored as a logarithm so that it stays positive.
"""

import math
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from pointset.configuration import RELEASED, AttentionOptions, ScoreName

MOST_HIDDEN = 2**22
"""Maximum number of hidden values of an additive score that are computed at once: 16 MB of float32."""


class Score(nn.Module):
    """Base class of all scores, with the scale and the temperature of the logits."""

    def __init__(self, dim: int, options: AttentionOptions = RELEASED) -> None:
        super().__init__()
        self.heads, self.width = options.heads, dim // options.heads
        scale = options.scale
        if isinstance(scale, str):
            scale = 1.0 / math.sqrt(dim if scale == "model" else dim / options.heads)
        self.factor = scale / options.temperature
        self.log_temperature = nn.Parameter(torch.zeros(self.heads)) if options.trained_temperature else None
        """Logarithms [h] of the trained factors of the temperature, one per head."""

    def scaled(self, X: Float[Tensor, "B h n c"]) -> Float[Tensor, "B h n c"]:
        """Apply the scale and the temperature of the logits to queries or keys."""
        if self.log_temperature is None:
            return X if self.factor == 1.0 else X * self.factor
        return X * (torch.exp(-self.log_temperature) * self.factor).view(-1, 1, 1)


class DotScore(Score):
    """Scaled dot product: logits = s Q_j K_j^T, with s = 1 / sqrt(d) by default.

    Queries [B, h, n, c] and keys [B, h, m, c] give logits [B, h, n, m].

    Args:
        dim: width d of the queries and keys of all heads.
        options: `heads`, `scale`, `temperature` and `trained_temperature`; see `AttentionOptions`.

    Source:
        Vaswani et al., Attention is all you need (arXiv 1706.03762), section 3.2.1.

    Example:
        >>> rows = torch.rand(2, 4, 9, 8)
        >>> pointset.nn.DotScore(32)(rows, rows).shape
        torch.Size([2, 4, 9, 9])
    """

    def forward(self, Q: Float[Tensor, "_ h n c"], K: Float[Tensor, "B h m c"]) -> Float[Tensor, "B h n m"]:
        """Return the logits."""
        return torch.matmul(Q, self.keys(K).mT)  # scale the keys: usually they are fewer than the queries

    def keys(self, K: Float[Tensor, "B h m c"]) -> Float[Tensor, "B h m c"]:
        """Transform the keys so that their products with the queries are the logits."""
        return self.scaled(K)

    def queries(self, Q: Float[Tensor, "_ h n c"]) -> Float[Tensor, "_ h n c"]:
        """Transform the queries so that their products with the keys are the logits."""
        return self.scaled(Q)


class BilinearScore(DotScore):
    """Multiplicative score: logits = s Q_j W_j^T K_j^T, where W_j [c, c] is trained and initially the identity.

    Queries [B, h, n, c] and keys [B, h, m, c] give logits [B, h, n, m].

    Args:
        dim, options: see `DotScore`.

    Source:
        Luong et al. (arXiv 1508.04025), section 3.1, "general".

    Example:
        >>> rows = torch.rand(2, 4, 9, 8)
        >>> pointset.nn.BilinearScore(32)(rows, rows).shape
        torch.Size([2, 4, 9, 9])
    """

    def __init__(self, dim: int, options: AttentionOptions = RELEASED) -> None:
        super().__init__(dim, options)
        self.weight = nn.Parameter(torch.eye(self.width).repeat(self.heads, 1, 1))

    def keys(self, K: Float[Tensor, "B h m c"]) -> Float[Tensor, "B h m c"]:
        """Transform the keys so that their products with the queries are the logits."""
        return self.scaled(torch.matmul(K, self.weight))

    def queries(self, Q: Float[Tensor, "_ h n c"]) -> Float[Tensor, "_ h n c"]:
        """Transform the queries so that their products with the keys are the logits."""
        return self.scaled(torch.matmul(Q, self.weight.mT))


class AdditiveScore(Score):
    """Additive score: logits = w_j^T relu(W_j [k; q]), possibly with more hidden layers.

    Hidden layers have no bias, and c values for each pair of a query and a key. To save memory, these values are
    computed for a few queries at a time, and recomputed in the backward pass.

    Queries [B, h, n, c] and keys [B, h, m, c] give logits [B, h, n, m].

    Args:
        dim, options: see `DotScore`. The option `score_layers` is the number of hidden layers.

    Source:
        Bahdanau et al. (arXiv 1409.0473), appendix A.1.2, who use tanh instead of relu.

    Example:
        >>> rows = torch.rand(2, 4, 9, 8)
        >>> pointset.nn.AdditiveScore(32)(rows, rows).shape
        torch.Size([2, 4, 9, 9])
    """

    def __init__(self, dim: int, options: AttentionOptions = RELEASED) -> None:
        super().__init__(dim, options)
        self.factor = 1.0 / options.temperature  # no scale: these logits do not grow with the width
        heads, width, layers = self.heads, self.width, options.score_layers
        self.of_key = nn.Parameter(initial_weights(heads, width, width, inputs=2 * width))
        self.of_query = nn.Parameter(initial_weights(heads, width, width, inputs=2 * width))
        self.hidden = nn.ParameterList(initial_weights(heads, width, width, inputs=width) for _ in range(layers - 1))
        self.out = nn.Parameter(initial_weights(heads, width, inputs=width))

    def forward(self, Q: Float[Tensor, "_ h n c"], K: Float[Tensor, "B h m c"]) -> Float[Tensor, "B h n m"]:
        """Return the logits."""
        keys, queries = torch.matmul(K, self.of_key).unsqueeze(2), torch.matmul(Q, self.of_query).unsqueeze(3)
        if torch.compiler.is_exporting():  # in an exported program, the number of pieces cannot depend on sizes
            return self.logits(keys, queries)
        pieces = queries.split(max(1, MOST_HIDDEN // max(1, keys.numel())), dim=2)
        if len(pieces) == 1 or not torch.is_grad_enabled():
            return torch.cat([self.logits(keys, piece) for piece in pieces], dim=2)
        again = partial(checkpoint, self.logits, keys, use_reentrant=False, preserve_rng_state=False)
        return torch.cat([again(piece) for piece in pieces], dim=2)

    def logits(self, keys: Float[Tensor, "B h 1 m c"], queries: Float[Tensor, "_ h n 1 c"]) -> Float[Tensor, "B h n m"]:
        """Return the logits of all pairs of keys and queries from their projections to the first hidden layer."""
        hidden = torch.relu(keys + queries)
        for weight in self.hidden:
            hidden = torch.relu(torch.matmul(hidden, weight.unsqueeze(1)))
        out = self.scaled(self.out[None, :, None])[0, :, 0]
        return torch.matmul(hidden, out[:, None, :, None]).squeeze(-1)


def split_heads(X: Float[Tensor, "B n d"], heads: int) -> Float[Tensor, "B h n c"]:
    """Split the columns into the heads."""
    return X.unflatten(-1, (heads, -1)).transpose(1, 2)


def join_heads(X: Float[Tensor, "B h n c"]) -> Float[Tensor, "B n d"]:
    """Concatenate the heads: concat_j."""
    return X.transpose(1, 2).flatten(2)


def initial_weights(*shape: int, inputs: int) -> Tensor:
    """Return random weights of a layer with this number of inputs, distributed as in `nn.Linear`."""
    bound = 1.0 / math.sqrt(inputs)
    return torch.empty(*shape).uniform_(-bound, bound)


SCORES: dict[ScoreName, type[Score]] = {"dot": DotScore, "bilinear": BilinearScore, "additive": AdditiveScore}
