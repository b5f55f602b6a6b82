"""Folded attention: many rows X read few keys, with W^Q applied to the keys and W^O applied to the values.

    (X W^Q_j + b_j) K_j^T = X (W^Q_j K_j^T) + b_j K_j^T,    A_j V_j W^O_j = A_j (V_j W^O_j)

so that no projection of n rows is computed.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.nn.fast.parts import Parts


def folded(
    parts: Parts, X: Float[Tensor, "B n dim_query"], Y: Float[Tensor, "B m dim_key"], mask: Tensor | None
) -> Float[Tensor, "B n d"]:
    """Multihead(X, Y, Y) with a linear score, W^O included."""
    assert isinstance(parts.output, nn.Linear)
    heads = parts.heads
    keys, values = parts.scored_keys(Y), parts.split(parts.value(Y))
    query, output = (W.unflatten(0, (heads, -1)) for W in (parts.query.weight, parts.output.weight.mT))
    folded = torch.matmul(keys, query).flatten(1, 2)  # [B, h m, dim_query]
    shift = torch.matmul(keys, parts.query.bias.view(heads, -1, 1)).mT  # [B, h, 1, m]
    logits = torch.matmul(X, folded.mT).unflatten(-1, (heads, -1)).transpose(1, 2) + shift
    weights = parts.weigh(logits, mask)
    written = torch.matmul(values, output).flatten(1, 2)  # [B, h m, d]
    return torch.matmul(weights.transpose(1, 2).flatten(2), written) + parts.output.bias
