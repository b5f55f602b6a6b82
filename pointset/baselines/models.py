"""Baselines (support vector machines on classical features or on embeddings of pretrained networks), and ensembles.

A baseline is a model of the registry, and `pointset.fit` fits it like every other model, but without epochs.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn

from pointset.baselines.features import ShapeFeatures, SurfaceFeatures
from pointset.configuration import LocalFeatures
from pointset.data.local_feature_cache import stored_local_features
from pointset.data.local_features import common_kind
from pointset.data.normalize import center_standardize
from pointset.data.ragged import batches_of_one_size
from pointset.data.rotations import Columns, rotate
from pointset.nn.masks import Mask
from pointset.nn.registry import register

ABSENT_LOGIT = -30.0
"""Logit of a class without a training shape, relative to the largest logit of the other classes."""
PENALTY, WIDTH = 30.0, 0.3
"""C of the support vector machine, and the product of the kernel's gamma and the number of feature blocks. Both were
selected by cross-validation on labeled_db and modelnet9_obj (see scripts/experiments/NOTES.md)."""
SHARPNESS = 8.0
"""Factor that converts the decision value of a pair of classes to a logit."""


class SupportVectors(nn.Module):
    """A one-against-one support vector machine with a Gaussian kernel, fitted by `sklearn.svm.SVC`.

    A row of inputs (the feature vector of one shape) consists of blocks, such as classical features or the embedding of
    one network. Each block is standardised and divided by the square root of its width, so that wide blocks do not
    outweigh narrow ones. Logits are divided by a temperature.
    """

    mean: Tensor
    scale: Tensor
    labels: Tensor
    temperature: Tensor
    vectors: Tensor
    coefficients: Tensor
    intercepts: Tensor
    owners: Tensor
    gamma: Tensor

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.outputs = classes
        for name in ("mean", "scale", "labels", "vectors", "coefficients", "intercepts", "owners"):
            self.register_buffer(name, torch.zeros(0))  # sizes and types depend on the training shapes
        self.register_buffer("temperature", torch.ones(()))
        self.register_buffer("gamma", torch.ones(()))

    def standardise(self, rows: Float[Tensor, "N width"], blocks: list[int]) -> Float[Tensor, "N width"]:
        """Compute mean and scale from training rows with blocks of these widths, and return the standardised rows."""
        deviation = rows.std(dim=0, correction=0)
        widths = torch.repeat_interleave(torch.tensor(blocks), torch.tensor(blocks)).to(rows)
        self.mean = rows.mean(dim=0)
        self.scale = torch.where(deviation > 1e-6, 1 / (deviation.clamp(min=1e-6) * widths.sqrt()), 0.0)
        return (rows - self.mean) * self.scale

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        for name, buffer in self.named_buffers(recurse=False):
            if prefix + name in state_dict:
                setattr(self, name, torch.empty_like(state_dict[prefix + name], device=buffer.device))
        super()._load_from_state_dict(state_dict, prefix, *others)

    def forward(self, rows: Float[Tensor, "B width"]) -> Float[Tensor, "B classes"]:
        """Return the logits, which are very small for classes without a training shape."""
        scores = self.scores((rows - self.mean) * self.scale) / self.temperature
        logits = scores.new_full((len(rows), self.outputs), 0.0) + scores.amax(dim=1, keepdim=True) + ABSENT_LOGIT
        return logits.index_copy(1, self.labels, scores)

    def fit(self, rows: Float[Tensor, "N width"], labels: Int[Tensor, " N"], blocks: list[int]) -> None:
        """Fit to one row and one class for each training shape. `blocks` are the widths of the blocks of a row."""
        from sklearn.svm import SVC

        standard = self.standardise(rows, blocks)
        self.labels, numbers = labels.unique(return_inverse=True)
        fitted = SVC(C=PENALTY, gamma=WIDTH / len(blocks), random_state=0)  # None would use the global random state
        with warnings.catch_warnings():  # classes may have one shape each
            warnings.filterwarnings("ignore", "The number of unique classes")
            fitted.fit(standard.numpy(), numbers.numpy())
        sign = -1 if len(fitted.classes_) == 2 else 1  # scikit-learn inverts the sign for two classes
        self.vectors = _tensor(fitted.support_vectors_)
        self.coefficients = _tensor(sign * fitted.dual_coef_)
        self.intercepts = _tensor(sign * fitted.intercept_)
        self.owners = torch.from_numpy(np.repeat(np.arange(len(fitted.n_support_)), fitted.n_support_))
        self.gamma = torch.tensor(WIDTH / len(blocks))

    def decisions(self, rows: Float[Tensor, "B width"]) -> Float[Tensor, "B pairs"]:
        """Return decision values of the pairs of classes (0, 1), (0, 2) etc. Positive values select the first class."""
        kernel = torch.exp(-self.gamma * torch.cdist(rows, self.vectors).square()).double()
        count = len(self.labels)
        # sums[b, i, r]: the sum over the support vectors of class i, for its pair with the r-th other class
        owned = [self.owners == number for number in range(count)]
        sums = torch.stack([kernel[:, own] @ self.coefficients[:, own].T.double() for own in owned], dim=1)
        first, second = torch.triu_indices(count, count, offset=1, device=rows.device)
        return (sums[:, first, second - 1] + sums[:, second, first] + self.intercepts).to(rows.dtype)

    def scores(self, rows: Float[Tensor, "B width"]) -> Float[Tensor, "B present"]:
        """Return the log-probability of each class to win all its pairs.

        Pairs are treated as independent, and the probability of a pair is a logistic function of its decision value.
        The accuracy is at least that of the votes of `decision_function`, and the log loss is smaller.
        """
        decisions, count = SHARPNESS * self.decisions(rows), len(self.labels)
        first, second = (
            nn.functional.one_hot(pair, count).to(decisions.dtype)
            for pair in torch.triu_indices(count, count, offset=1, device=rows.device)
        )
        return nn.functional.logsigmoid(decisions) @ first + nn.functional.logsigmoid(-decisions) @ second


def _tensor(values: ndarray) -> Tensor:
    """Return a contiguous float32 tensor, so that products have the same bits before saving and after loading."""
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))


EMBEDDERS = {
    "embedding": (
        "dumlp16-max+dumlp16.modelnet40-1024",
        "dumlp16-max+dumlp16.modelnet40-1024-coordinates",
        "isab16-pma.modelnet40-1024",
        "rff-pma4.modelnet40-1024",
    ),
    "any": ("dumlp16-max+dumlp16.modelnet40-1024-any",),
}
"""Pretrained networks whose pooled features are embeddings: of upright shapes or, with "any", of shapes in any pose."""


class Baseline(nn.Module):
    """A classifier with logits = head(rows(X)). Rows are the concatenated outputs of one or several extractors.

    Attributes:
        extractors: modules that map clouds [B, n, 3 + local features] with Z up to rows [B, width].
        head: the support vector machine.
        turn: [3, 3], the rotation of the clouds to Z up.
        views: [k, 3, 3], the rotations of the clouds over which the predictions are averaged.
        local_features: the kind of local features that extractors need. They are computed if the points have none.
        inputs: number of columns of the points before the local features.
    """

    turn: Tensor
    views: Tensor

    def __init__(self, extractors: list[nn.Module], head: SupportVectors, inputs: int = 3) -> None:
        super().__init__()
        self.inputs = inputs
        self.extractors = nn.ModuleList(extractors).requires_grad_(False)
        self.local_features = common_kind(extract.kind for extract in extractors if isinstance(extract, Embedder))
        self.head = head
        self.register_buffer("turn", torch.eye(3))
        self.register_buffer("views", torch.eye(3)[None])
        self._device_anchor = nn.Parameter(torch.zeros(()), requires_grad=False)  # has the model's device

    def forward(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B classes"]:
        return self.logits(self.blocks(points, mask))

    def rows(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B width"]:
        """Return the inputs of the head for the first view. An empty set is treated as one point at the origin."""
        return torch.cat(self.blocks(points, mask), dim=2)[:, 0]

    def blocks(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> list[Float[Tensor, "B k width"]]:
        """Return the outputs of each extractor for each view."""
        clouds = [self._complete(cloud.float()) for cloud in batches_of_one_size(points, mask)]
        columns = Columns(local_features=self.local_features)
        views = [
            [rotate(sets, (self.turn @ view).expand(len(sets), 3, 3), columns) for view in self.views]
            for sets in clouds
        ]
        return [
            torch.cat([torch.stack([extract(sets) for sets in turned], dim=1) for turned in views])
            for extract in self.extractors
        ]

    def _complete(self, points: Float[Tensor, "B n d"]) -> Float[Tensor, "B n width"]:
        """Return the coordinates and the local features, which are computed if the points have none."""
        coordinates, features = points[..., :3], points[..., self.inputs :]
        if (kind := self.local_features) == "none":
            return coordinates
        if not features.shape[2]:
            clouds = [stored_local_features(cloud, kind) for cloud in coordinates.cpu().numpy()]
            features = torch.from_numpy(np.stack(clouds)).to(points)
        return torch.cat([coordinates, features], dim=2)

    def logits(self, blocks: list[Float[Tensor, "B k width"]]) -> Float[Tensor, "B classes"]:
        """Return the logits of one view, or the mean log-probabilities of several views."""
        rows = torch.cat(blocks, dim=2)
        logits = self.head(rows.flatten(0, 1))
        return logits if rows.shape[1] == 1 else logits.log_softmax(dim=1).view(*rows.shape[:2], -1).mean(dim=1)

    def fit_rows(self, blocks: list[Float[Tensor, "N k width"]], labels: Tensor) -> None:
        """Fit the head to the outputs of each extractor and labels [N]. Every view counts as a shape."""
        rows = torch.cat(blocks, dim=2).flatten(0, 1)
        self.head.fit(rows, labels.repeat_interleave(len(self.views)), [block.shape[2] for block in blocks])

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        self.views = self.views.new_empty(state_dict[f"{prefix}views"].shape)
        super()._load_from_state_dict(state_dict, prefix, *others)


class Embedder(nn.Module):
    """A module that normalises clouds like the training shapes of a network, and returns the network's pooled features.

    Attributes:
        kind: the kind of the network's local features.
    """

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network.eval()
        self.kind: LocalFeatures = network.local_features

    def train(self, mode: bool = True) -> "Embedder":
        """Do nothing: the network stays in evaluation mode."""
        return self

    def forward(self, X: Float[Tensor, "B n d"]) -> Float[Tensor, "B width"]:
        features = X[..., 3:] if self.kind != "none" else X[..., :0]
        return self.network.embed_sets(torch.cat([center_standardize(X[..., :3]), features], dim=2))


def points_for(model: Any, points: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
    """Return the points, without their local features if the model uses none."""
    return points[..., : model.inputs] if model.local_features == "none" else points


class Ensemble(nn.Module):
    """A classifier whose logits are the mean of the log-probabilities of its members.

    Attributes:
        members: classifiers of the same classes.
        local_features: the kind of local features of the members that use local features.
    """

    def __init__(self, members: list[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.local_features = common_kind(getattr(member, "local_features", "none") for member in members)

    def forward(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B classes"]:
        members: list[Any] = [*self.members]
        return mean_log_probabilities([member(points_for(member, points), mask) for member in members])


def mean_log_probabilities(logits: Sequence[Float[Tensor, "B classes"]]) -> Float[Tensor, "B classes"]:
    """Return the mean of the log-probabilities of several classifiers, computed from their logits."""
    return torch.stack([values.log_softmax(dim=1) for values in logits]).mean(dim=0)


def _make(name: str, classes: int, inputs: int, pretrained: Callable[[str], nn.Module]) -> Baseline:
    """Return the baseline with a name such as "surface+embedding-svm"."""
    extractors: list[nn.Module] = []
    for rows in name.removesuffix("-svm").split("+"):
        if rows in EMBEDDERS:
            extractors += [Embedder(pretrained(embedder)) for embedder in EMBEDDERS[rows]]
        else:
            extractors.append({"features": ShapeFeatures, "surface": SurfaceFeatures}[rows]())
    return Baseline(extractors, SupportVectors(classes), inputs)


BASELINES = (
    "features-svm",
    "surface-svm",
    "features+surface-svm",
    "embedding-svm",
    "any-svm",
    "surface+embedding-svm",
    "surface+any-svm",
    "features+surface+embedding-svm",
)
for _name in BASELINES:
    register("baseline", _name)(partial(_make, _name))
