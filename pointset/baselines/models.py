"""Baselines by name: a head of `heads` on classical features, or on the embeddings of trained networks.

They are whole models of the registry, and are fitted by `pointset.fit` like every model: once, without epochs.
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.baselines.heads import HEADS, Head
from pointset.baselines.shape_features import ShapeFeatures
from pointset.data.normalize import center_standardize
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.registry import register

EMBEDDERS = ("isab16-max.modelnet40-1024", "dumlp16-max+dumlp16.modelnet40-1024", "rff-max.modelnet40-1024")
"""Trained networks whose pooled rows are the embedding: together better than each, and fast."""
UP_TO_Z = {"z": [[1.0, 0, 0], [0, 1, 0], [0, 0, 1]], "y": [[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]}
"""Matrices that turn a shape with this axis up to Z up: the networks and the features want that."""
SETS_AT_ONCE = 16


class Baseline(nn.Module):
    """logits = head(rows(X)), the rows of one or several extractors side by side.

    Attributes:
        extractors: modules from clouds [B, n, 3] with Z up to rows [B, width].
        head: see `pointset.baselines.heads`.
        turn: [3, 3], turns the clouds to Z up.
    """

    turn: Tensor

    def __init__(self, extractors: list[nn.Module], head: Head) -> None:
        super().__init__()
        self.extractors = nn.ModuleList(extractors).requires_grad_(False)
        self.head = head
        self.register_buffer("turn", torch.eye(3))
        self.anchor = nn.Parameter(torch.zeros(()), requires_grad=False)  # says where the model is

    def forward(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        return self.head(self.rows(points, mask))

    def rows(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B width"]:
        """The rows of the head, from coordinates alone; an empty set counts as one point."""
        return torch.cat(self.blocks(points, mask), dim=1)

    def blocks(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> list[Tensor]:
        """The rows of each extractor."""
        sets = [cloud[..., :3].float() @ self.turn.T for cloud in batches_of_one_size(points, mask)]
        return [torch.cat([extract(cloud) for cloud in sets]) for extract in self.extractors]

    def fit_rows(self, blocks: list[Tensor], labels: Tensor) -> None:
        """Fit the head to the rows of the training shapes, given by extractor."""
        self.head.fit(torch.cat(blocks, dim=1), labels, [block.shape[1] for block in blocks])


class Embedder(nn.Module):
    """The pooled rows of a network [B, k * d], of clouds normalised as its training shapes were."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network.eval()

    def train(self, mode: bool = True) -> "Embedder":
        """Do nothing: the network keeps its evaluation mode."""
        return self

    def forward(self, X: Float[Tensor, "B n 3"]) -> Float[Tensor, "B width"]:
        """Return the pooled rows, side by side."""
        return self.network.embed_sets(center_standardize(X))  # type: ignore[operator]


def batches_of_one_size(points: Tensor, mask: Layout | None) -> Iterator[Tensor]:
    """Batches [b, n, d] without padding, in the order of the sets; an empty set has one point at the origin."""
    if isinstance(mask, Packed):
        points, mask = mask.padded(points)
    if mask is None:
        yield from points.split(SETS_AT_ONCE)
        return
    for cloud, real in zip(points, mask, strict=True):
        yield (cloud[real] if real.any() else cloud.new_zeros(1, cloud.shape[1]))[None]


def _features(head: str) -> Callable[..., Baseline]:
    def make(classes: int) -> Baseline:
        return Baseline([ShapeFeatures()], HEADS[head](classes))

    return make


def _embedding(head: str) -> Callable[..., Baseline]:
    def make(classes: int, pretrained: Callable[[str], nn.Module]) -> Baseline:
        return Baseline([Embedder(pretrained(name)) for name in EMBEDDERS], HEADS[head](classes))

    return make


def _both(head: str) -> Callable[..., Baseline]:
    def make(classes: int, pretrained: Callable[[str], nn.Module]) -> Baseline:
        return Baseline([ShapeFeatures(), *(Embedder(pretrained(name)) for name in EMBEDDERS)], HEADS[head](classes))

    return make


ROWS = {"features": _features, "embedding": _embedding, "features+embedding": _both}
BASELINES = ("features-svm", "embedding-svm", "embedding-logistic", "embedding-knn", "features+embedding-svm")
for _name in BASELINES:
    _rows, _head = _name.split("-")
    register("baseline", _name)(ROWS[_rows](_head))
