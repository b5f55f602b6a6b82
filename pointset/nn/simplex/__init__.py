"""From scores to weights: functions of z [..., n] whose rows lie on the simplex, w >= 0 and sum(w) = 1.

Each is the solution of a small optimisation problem, exact, with exact gradients. They differ in how weights are
spread: softmax gives all keys some, sparsemax and entmax-1.5 give many keys exactly 0, and the constrained ones keep
every weight below a bound of its own.
"""

from collections.abc import Callable

from torch import Tensor

from pointset.configuration import CONSTRAINED
from pointset.nn.simplex.bounded_softmax import constrained_softmax
from pointset.nn.simplex.bounded_sparsemax import constrained_sparsemax
from pointset.nn.simplex.bounds import BoundsError
from pointset.nn.simplex.entmax import entmax15
from pointset.nn.simplex.soft import softmax
from pointset.nn.simplex.sparse import sparsemax

__all__ = [
    "BOUNDED",
    "WEIGHTS",
    "BoundsError",
    "constrained_softmax",
    "constrained_sparsemax",
    "entmax15",
    "softmax",
    "sparsemax",
]

WEIGHTS: dict[str, Callable[..., Tensor]] = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "csoftmax": constrained_softmax,
    "csparsemax": constrained_sparsemax,
    "entmax15": entmax15,
}
"""By the name that models and experiments use: f(z, mask=mask), and f(z, upper, mask=mask) for those in `BOUNDED`."""

BOUNDED = frozenset(CONSTRAINED)
"""The names whose weights have upper bounds."""
