"""The kinds of local features: what each has, in which order, and how they turn with the shape."""

from collections.abc import Iterable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from pointset.configuration import LocalFeatures

SCALES = (0.8, 0.4, 0.2, 0.1)
"""Standard deviations s of mean shifts, relative to the cloud; each is half of the one before."""
PAIRS = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))
"""Products of the components of a normal, in this order."""
_PLACES = [0, 3, 4, 3, 1, 5, 4, 5, 2]
"""Of the entries of a symmetric matrix, row by row, among `PAIRS`."""
SHAPE, SHIFTS = 3, 3 * len(SCALES)
"""Numbers of linearity, planarity and distance, and of mean shifts."""
PARTS: dict[LocalFeatures, tuple[str, ...]] = {
    "none": (),
    "oriented": ("shape", "products"),
    "invariant": ("shape", "invariant"),
    "all": ("shape", "invariant", "products"),
    "shifts": ("shape", "shifts", "products"),
    "both": ("shape", "shifts", "invariant", "products"),
}
"""What the numbers of a kind are of, in this order."""
_PLACES_IN_BOTH = {"shape": range(3), "shifts": range(3, 15), "invariant": range(15, 36), "products": range(36, 42)}
COLUMNS = {kind: [place for part in parts for place in _PLACES_IN_BOTH[part]] for kind, parts in PARTS.items()}
"""By kind, the places of its numbers among those of "both"."""
WIDTHS = {kind: len(columns) for kind, columns in COLUMNS.items()}
"""Numbers of each point, by kind."""


def joint_kind(kinds: Iterable[LocalFeatures]) -> LocalFeatures:
    """The kind with the fewest numbers that has those of all these kinds."""
    wanted = {column for kind in kinds for column in COLUMNS[kind]}
    return min((kind for kind in COLUMNS if wanted <= {*COLUMNS[kind]}), key=WIDTHS.__getitem__)


def numbers_of_kind(numbers: Any, given: LocalFeatures, wanted: LocalFeatures) -> Any:
    """The numbers [..., width] of a kind, an array or a tensor, from those of one that has them all."""
    return numbers if given == wanted else numbers[..., [COLUMNS[given].index(one) for one in COLUMNS[wanted]]]


def points_of_kind(points: Tensor, inputs: int, given: LocalFeatures, wanted: LocalFeatures) -> Tensor:
    """Points [..., inputs + width] with the numbers of one kind, or bare ones as they are, as another kind has them."""
    numbers = points[..., inputs:]
    if given == wanted or not numbers.shape[-1]:
        return points
    return torch.cat([points[..., :inputs], numbers_of_kind(numbers, given, wanted)], dim=-1)


def turned_numbers(
    numbers: Float[Tensor, "B n width"], matrices: Float[Tensor, "B 3 3"], kind: LocalFeatures
) -> Float[Tensor, "B n width"]:
    """The numbers of clouds that are turned, x -> R x: products of normals become R (n n^T) R^T, mean shifts R v."""
    if kind == "invariant":
        return numbers
    products = numbers[..., -len(PAIRS) :]
    N = products[..., _PLACES].unflatten(-1, (3, 3))
    turned = torch.einsum("bij,bnjk,blk->bnil", matrices, N, matrices)
    products = torch.stack([turned[..., i, j] for i, j in PAIRS], dim=-1)
    others = numbers[..., : -len(PAIRS)]
    if "shifts" in PARTS[kind]:
        shape, vectors, rest = others.tensor_split((SHAPE, SHAPE + SHIFTS), dim=-1)
        vectors = torch.einsum("bij,bnsj->bnsi", matrices, vectors.unflatten(-1, (len(SCALES), 3)))
        others = torch.cat([shape, vectors.flatten(-2), rest], dim=-1)
    return torch.cat([others, products], dim=-1)
