"""The interface of multihead attention that the functions of this package compute with."""

from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor, nn


class HiddenLayer(NamedTuple):
    """The weights of an additive score with one hidden layer: out_j^T relu(of_query_j^T q + of_key_j^T k)."""

    of_query: Float[Tensor, "h c c"]
    of_key: Float[Tensor, "h c c"]
    out: Float[Tensor, "h c"]
    """Includes the factor of the logits."""


@runtime_checkable
class Parts(Protocol):
    """The trained parts of multihead attention: implemented by `pointset.nn.attention.Multihead`."""

    heads: int
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    output: nn.Module

    def split(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B h n c"]:
        """Split the columns by head."""

    def scored_queries(self, Q: Float[Tensor, "B n d"]) -> Float[Tensor, "B h n c"]:
        """Queries whose plain products with the keys are the logits of a linear score."""

    def scored_keys(self, Y: Float[Tensor, "B m dim_key"]) -> Float[Tensor, "B h m c"]:
        """Keys whose plain products with the queries are the logits of a linear score."""

    def hidden_layer(self) -> HiddenLayer:
        """The layers of an additive score."""

    def weigh(self, logits: Float[Tensor, "B h n m"], mask: Tensor | None) -> Float[Tensor, "B h n m"]:
        """Compute the weights, and pass them to `record` if it is set."""
