"""Baselines by name: a head of `heads` on classical features, or on the embeddings of trained networks.

They are whole models of the registry, and are fitted by `pointset.fit` like every model: once, without epochs.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.baselines.features import ShapeFeatures, SurfaceFeatures
from pointset.baselines.heads import HEADS, Head, KernelRidge
from pointset.data.normalize import center_standardize, log_size
from pointset.nn.fast.packing import Layout, Packed
from pointset.nn.registry import register

EMBEDDERS = ("isab16-max.modelnet40-1024", "dumlp16-max+dumlp16.modelnet40-1024", "rff-max.modelnet40-1024")
"""Trained networks whose pooled rows are the embedding: together better than each, and fast."""
SETS_AT_ONCE = 16


class Baseline(nn.Module):
    """logits = head(rows(X)), the rows of one or several extractors side by side; or numbers, of a regressor.

    Attributes:
        extractors: modules from clouds [B, n, 3] with Z up to rows [B, width].
        head: see `pointset.baselines.heads`.
        turn: [3, 3], turns the clouds to Z up.
        views: [k, 3, 3], turns of the clouds over which the predictions are averaged.
    """

    turn: Tensor
    views: Tensor

    def __init__(self, extractors: list[nn.Module], head: Head | KernelRidge) -> None:
        super().__init__()
        self.extractors = nn.ModuleList(extractors).requires_grad_(False)
        self.head = head
        self.register_buffer("turn", torch.eye(3))
        self.register_buffer("views", torch.eye(3)[None])
        self.anchor = nn.Parameter(torch.zeros(()), requires_grad=False)  # says where the model is

    def forward(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]."""
        return self.logits(self.blocks(points, mask))

    def rows(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> Float[Tensor, "B width"]:
        """The rows of the head, from coordinates alone, of the first view; an empty set counts as one point."""
        return torch.cat(self.blocks(points, mask), dim=2)[:, 0]

    def blocks(self, points: Float[Tensor, "*rows d"], mask: Layout | None = None) -> list[Float[Tensor, "B k width"]]:
        """The rows of each extractor, of each view."""
        turns = [self.turn @ view for view in self.views]
        sets = [cloud[..., :3].float() for cloud in batches_of_one_size(points, mask)]
        return [
            torch.cat([torch.stack([extract(cloud @ turn.T) for turn in turns], dim=1) for cloud in sets])
            for extract in self.extractors
        ]

    def logits(self, blocks: list[Float[Tensor, "B k width"]]) -> Float[Tensor, "B classes"]:
        """Logits for these rows: the mean over the views of log probabilities, if there are several."""
        rows = torch.cat(blocks, dim=2)
        logits = self.head(rows.flatten(0, 1))
        if isinstance(self.head, KernelRidge):
            return logits.view(*rows.shape[:2], -1).mean(dim=1)
        return logits if rows.shape[1] == 1 else logits.log_softmax(dim=1).view(*rows.shape[:2], -1).mean(dim=1)

    def fit_rows(self, blocks: list[Float[Tensor, "N k width"]], labels: Tensor) -> None:
        """Fit the head to rows, by extractor, and classes [N] or numbers [N, targets]; every view counts as a shape."""
        rows = torch.cat(blocks, dim=2).flatten(0, 1)
        self.head.fit(rows, labels.repeat_interleave(len(self.views), dim=0), [block.shape[2] for block in blocks])

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        self.views = self.views.new_empty(state_dict.setdefault(f"{prefix}views", torch.eye(3)[None]).shape)
        super()._load_from_state_dict(state_dict, prefix, *others)


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


class Size(nn.Module):
    """The log of the size [B, 1] of clouds in their own units."""

    def forward(self, X: Float[Tensor, "B n 3"]) -> Float[Tensor, "B 1"]:
        """Return the logs."""
        return log_size(X)[:, None].to(X.dtype)


def batches_of_one_size(points: Tensor, mask: Layout | None) -> Iterator[Tensor]:
    """Batches [b, n, d] without padding, in the order of the sets; an empty set has one point at the origin."""
    if isinstance(mask, Packed):
        points, mask = mask.padded(points)
    if mask is None:
        yield from points.split(SETS_AT_ONCE)
        return
    for cloud, real in zip(points, mask, strict=True):
        yield (cloud[real] if real.any() else cloud.new_zeros(1, cloud.shape[1]))[None]


def _extractors(rows: str, pretrained: Callable[[str], nn.Module]) -> Iterator[nn.Module]:
    """The extractors of rows such as "features+embedding"."""
    for name in rows.split("+"):
        if name == "embedding":
            yield from (Embedder(pretrained(embedder)) for embedder in EMBEDDERS)
        else:
            yield {"features": ShapeFeatures, "surface": SurfaceFeatures}[name]()


def _make(name: str, classes: int, pretrained: Callable[[str], nn.Module]) -> Baseline:
    rows, head = name.split("-")
    extractors = list(_extractors(rows, pretrained))
    if head == "ridge":
        return Baseline([*extractors, Size()], KernelRidge(classes))
    return Baseline(extractors, HEADS[head](classes))


BASELINES = (
    "features-svm",
    "surface-svm",
    "features+surface-svm",
    "embedding-svm",
    "embedding-logistic",
    "embedding-knn",
    "features+embedding-svm",
    "features+surface+embedding-svm",
)
NUMBER_BASELINES = ("features-ridge", "surface-ridge", "features+surface-ridge", "features+surface+embedding-ridge")
"""Those that predict numbers: kernel ridge regression."""
for _name in (*BASELINES, *NUMBER_BASELINES):
    register("baseline", _name)(partial(_make, _name))
