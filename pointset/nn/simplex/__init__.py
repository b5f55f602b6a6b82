"""Functions from scores z [..., n] to weights on the simplex: each row w has w >= 0 and sum(w) = 1.

Each function is the exact solution of a small optimisation problem and has exact gradients. Softmax gives every key a
positive weight, sparsemax and entmax-1.5 give many keys a weight of exactly 0, and the constrained functions have an
upper bound for the weight of each key.
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
"""Functions by their name in configurations. They are called as f(z, mask=mask), those in `BOUNDED` as f(z, upper,
mask=mask)."""

BOUNDED = frozenset(CONSTRAINED)
"""Names of the functions that take upper bounds."""
