"""Functions from scores z [..., n] to weights on the simplex: each row w has w >= 0 and sum(w) = 1.

Each solves a small optimisation problem exactly and has exact gradients. Softmax gives every key a positive weight;
sparsemax and entmax-1.5 give many keys a weight of exactly 0; the constrained functions keep every weight below an
upper bound per key.
"""

from collections.abc import Callable

from torch import Tensor

from pointset.configuration import CONSTRAINED
from pointset.nn.simplex.bounded import constrained_softmax, constrained_sparsemax
from pointset.nn.simplex.unbounded import entmax15, softmax, sparsemax

WEIGHTS: dict[str, Callable[..., Tensor]] = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "csoftmax": constrained_softmax,
    "csparsemax": constrained_sparsemax,
    "entmax15": entmax15,
}
"""Functions by the name used in configurations. Called as f(z, mask=mask), those in `BOUNDED` as
f(z, upper, mask=mask)."""

BOUNDED = frozenset(CONSTRAINED)
"""Names of the functions that take upper bounds."""
