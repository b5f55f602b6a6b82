"""Classifiers of point sets: head(pool(encoder(X))), and a wrapper with the same methods for other networks."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from pointset.baselines.models import Baseline
from pointset.configuration import MOST_POINTS, LocalFeatures
from pointset.data.local_features import WIDTHS
from pointset.data.options import Preparation
from pointset.data.point_sets import PointSets
from pointset.data.preparation import Prepared, prepare
from pointset.inputs import InputError, as_sets
from pointset.nn.masks import Mask, zero_padded_rows
from pointset.nn.modules import Encoder
from pointset.zoo.local_feature_inputs import LocalFeatureInputs
from pointset.zoo.out_of_distribution import TrainingDistribution
from pointset.zoo.predicting import (
    SETS_AT_ONCE,
    Clouds,
    as_given,
    embed_rows,
    list_clouds,
    predict,
    prepared_batches,
)

LOWER = (torch.float32, torch.bfloat16, torch.float16)
"""Types that autocast (mixed precision) converts."""
PointsLike = Any
"""Points [B, n, inputs], or one cloud [n, inputs]: a tensor or an array of any number type."""
MaskLike = Any
"""bool [B, n], or [n] for one cloud; None if all points are real."""


def untrained_preparation(inputs: int) -> Preparation:
    """Return the preparation of an untrained model: points stay unchanged, and meshes are sampled."""
    return Preparation(points=MOST_POINTS, normalize="none", inputs=inputs)


class Classifier(nn.Module):
    """Base class of the zoo's models: predictions and embeddings of clouds in any unit.

    Attributes:
        inputs: number of values per point (coordinates and point features), without local features.
        local_features: the kind of local features that the model uses.
        widths: numbers of values per point that `forward` accepts: without local features and, if used, with them.
        preparation: how shapes become point sets, as in training; before training, points stay unchanged.
        classes: names of the classes in the order of the logits; None before training if only the number of classes is
            known.
        temperature: probabilities are softmax(logits / temperature). Trained models of the package have the temperature
            on their card.
        training_distribution: statistics that detect out-of-distribution shapes, or None.
        description: content of run.json for a model of `load_model`, otherwise None.
        by_thresholds: True if the classes are ordered and training used thresholds between them; see `ranked`.
        untrained_layer: initial weights, on the CPU, of a new last layer for other classes.

    `model(points, mask)` takes prepared points: those of `PointSets`, or `model.prepare(shape).points`.
    """

    def __init__(self, inputs: int, local_features: LocalFeatures = "none") -> None:
        super().__init__()
        self.inputs, self.local_features = inputs, local_features
        width = WIDTHS[local_features]
        self.widths = (inputs, inputs + width) if width else (inputs,)
        self.preparation = untrained_preparation(inputs)
        self.classes: list[str] | None = None
        self.temperature = 1.0
        self.training_distribution: TrainingDistribution | None = None
        self.description: dict[str, Any] | None = None
        self.by_thresholds = False
        self.untrained_layer: Tensor | None = None

    def prepare(self, shape: Any, **reading: Any) -> Prepared:
        """Prepare a shape in the same way as the training shapes; see `pointset.data.prepare`.

        Example:
            >>> prepared = pointset.create_model("isab16-pma", pretrained="modelnet40-1024").prepare(X[0])
            >>> prepared.points.shape
            torch.Size([32, 3])
        """
        return prepare(shape, self.preparation, **reading)

    @property
    def has_preparation(self) -> bool:
        """True if the model was trained, or if its preparation was set."""
        return self.preparation != untrained_preparation(self.inputs)

    def __repr__(self) -> str:
        """Return a line with the name and the numbers of classes and parameters; `print(model)` shows the layers."""
        spec = getattr(self, "spec", None)
        count = count_parameters(self)
        about = "" if spec is None else f" {spec.name}: {spec.classes} classes"
        return f"{type(self).__name__}{about}, {self.inputs} inputs per point, {count:,} parameters"

    def __str__(self) -> str:
        return nn.Module.__repr__(self)

    def embed(
        self, points: Clouds, mask: MaskLike = None, *, batch_size: int = SETS_AT_ONCE, up: str | None = None
    ) -> Any:
        """Return an embedding of each cloud, float32 [B, d]: similar shapes have similar embeddings; see `predict`.

        The embedding is the input of the head: the concatenated pooled features. It represents new classes better than
        later layers do. For dumlp16-max+dumlp16.modelnet40-1024, the nearest neighbour of a shape of labeled_db has the
        same class for 89.5 % of the shapes by embeddings, and for 83.7 % by logits.
        """
        return as_given(embed_rows(self, prepared_batches(self, points, mask, batch_size, up)), points)

    def predict(
        self, points: Clouds, mask: MaskLike = None, *, batch_size: int = SETS_AT_ONCE, up: str | None = None
    ) -> Any:
        """Return the class index of each cloud; the name of the class is `model.classes[index]`.

        Clouds may have any unit and position. `prepare` is applied to each cloud, so a cloud has the same prediction as
        a file with its points. Clouds that are already normalised, such as those of `PointSets`, do not change. The
        model predicts in evaluation mode. Afterwards, the former mode is restored.

        Args:
            points: one cloud [n, inputs], a batch [B, n, inputs], or a list of B clouds [n_i, inputs]: arrays or
                tensors of any number type. If a cloud has more than `preparation.points` points, a random subset is
                used. Also accepted: `PointSets`, the path of a mesh or a point cloud, a `Mesh` (also of trimesh), a
                `Cloud`, a result of `prepare`, or a list of these.
            mask: bool [B, n] for a batch, True at real points.
            batch_size: number of clouds per batch; it changes results by rounding errors only.
            up: the upward axis of the shapes; see `pointset.data.prepare`.

        Returns:
            int64 [B], with B = 1 for one cloud. It is an array or, if a cloud is a tensor, a tensor on the device of
            the cloud.

        Raises:
            InputError: the points are not clouds, or a cloud has no point or is not finite (the message names the
                cloud).
        """
        self._warn_if_untrained(points)
        batches = prepared_batches(self, points, mask, batch_size, up)
        return as_given(predict(self, batches).logits.argmax(dim=1), points)

    def predict_proba(
        self, points: Clouds, mask: MaskLike = None, *, batch_size: int = SETS_AT_ONCE, up: str | None = None
    ) -> Any:
        """Return probabilities of the classes, float32 [B, classes]: softmax(logits / temperature); see `predict`.

        Out-of-distribution shapes can have large probabilities, too; `classify` reports these shapes with low
        confidence.
        """
        self._warn_if_untrained(points)
        probabilities = predict(self, prepared_batches(self, points, mask, batch_size, up)).probabilities
        return as_given(torch.from_numpy(probabilities).float(), points)

    def _warn_if_untrained(self, points: Clouds) -> None:
        new = self.untrained_layer
        if new is not None and torch.equal(new, self.head[-1].weight.detach().cpu()):  # type: ignore[index,union-attr]
            warnings.warn(
                "the last layer is new and untrained, so predictions mean nothing: train the model with pointset.fit",
                UserWarning,
                stacklevel=3,
            )
        if not (self.has_preparation or isinstance(points, PointSets)):
            warnings.warn(
                "the model has no preparation: points are not normalised; if it was trained on "
                "normalised sets, set model.preparation = train.preparation",
                UserWarning,
                stacklevel=3,
            )

    def classify(self, shapes: Clouds, mask: MaskLike = None, *, up: str | None = None) -> list[dict[str, Any]]:
        """Return the most likely class of each shape, as `pointset classify` prints it; see `predict`.

        Returns:
            A dict for each shape: "name" (for a file, its path), "class", "probability" of the class, and
            "low_confidence": True if the shape may belong to none of the classes, or be in another pose than the
            training shapes.

        Example:
            >>> pointset.load_model("isab16-pma.modelnet40-1024").classify(X[:1])[0].keys()
            dict_keys(['name', 'class', 'probability', 'low_confidence'])
        """
        if self.classes is None:
            raise InputError("the model has no names of classes: give them to create_model, or load a trained model")
        self._warn_if_untrained(shapes)
        listed: Any = shapes
        if isinstance(shapes, PointSets):
            names = shapes.names
        else:
            listed = list_clouds(shapes, mask, self.inputs)
            files = [str(shape) if isinstance(shape, str | Path) else "" for shape in listed]
            names = [file or f"cloud {row}" for row, file in enumerate(files)]
        prediction = predict(self, prepared_batches(self, listed, up=up))
        best = prediction.probabilities.max(axis=1).tolist()
        columns = zip(names, prediction.logits.argmax(dim=1).tolist(), best, prediction.low_confidence, strict=True)
        return [
            {"name": name, "class": self.classes[label], "probability": share, "low_confidence": bool(low)}
            for name, label, share, low in columns
        ]


class SetClassifier(Classifier):
    """A classifier, logits = head(pool(encoder(X))), that is invariant to the order of points, for sets of any size.

    Attributes:
        encoder: permutation-equivariant modules, called in turn as `module(X, mask)`, which return one vector per
            point.
        pool: called as `pool(Z, mask)`; returns k pooled vectors [B, k, d] for the encoded points [B, n, d].
        head: maps the k pooled vectors to logits [B, classes].
        numbers: appends local features to the points; None for a model without local features.
    """

    def __init__(
        self,
        encoder: Iterable[nn.Module],
        pool: nn.Module,
        head: nn.Module,
        inputs: int = 3,
        numbers: LocalFeatureInputs | None = None,
    ) -> None:
        super().__init__(inputs, "none" if numbers is None else numbers.kind)
        self.encoder = encoder if isinstance(encoder, Encoder) else Encoder(encoder)
        self.pool = pool
        self.head = head
        self.numbers = numbers

    def with_numbers(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B n width"]:
        """Return the points, with local features appended if the model uses them and the points have none."""
        return points if self.numbers is None else self.numbers.complete(points, mask)

    def encode(self, points: Float[Tensor, "B n d"], mask: Mask | None = None) -> Float[Tensor, "B n width"]:
        """Return one encoded vector per point, in the order of the points."""
        if self.numbers is not None:
            points = self.numbers(points, mask)
        return self.encoder(points, mask)

    def embed_sets(self, points: PointsLike, mask: MaskLike = None) -> Float[Tensor, "B width"]:
        """Return the concatenated pooled features of each set, the input of the head, for prepared points."""
        points, mask = checked_points(self, points, mask)
        return self.pool(self.encode(points, mask), mask).flatten(1)

    def forward(self, points: PointsLike, mask: MaskLike = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes] of prepared points.

        This method does not normalise the points: pass those of `PointSets` or `model.prepare(shape).points`.
        (`predict` takes shapes in any unit.) `mask` is True at real points. The values of padded points have no effect.
        An empty set (n = 0, or no True in its mask) is pooled to zeros, and has meaningless logits. One cloud [n,
        inputs] gives logits [1, classes]. Arrays, integers and other floating types are converted to the type of the
        weights.

        Raises:
            InputError: the points are not [B, n, inputs] or [n, inputs], or the mask does not fit the points.
        """
        points, mask = checked_points(self, points, mask)
        logits = self.head(self.pool(self.encode(points, mask), mask))
        return ranked(logits) if self.by_thresholds and not self.training else logits


class WholeClassifier(Classifier):
    """A network such as PointNet, a baseline or an ensemble, with the methods of `SetClassifier`."""

    def __init__(self, model: nn.Module, inputs: int = 3) -> None:
        super().__init__(inputs, getattr(model, "local_features", "none"))
        self.model = model

    def forward(self, points: PointsLike, mask: MaskLike = None) -> Float[Tensor, "B classes"]:
        """Return logits [B, classes]; see `SetClassifier.forward`."""
        logits = self.model(*checked_points(self, points, mask))
        return ranked(logits) if self.by_thresholds and not self.training else logits

    def embed_sets(self, points: PointsLike, mask: MaskLike = None) -> Float[Tensor, "B width"]:
        """Return an embedding of each set by a baseline; see `SetClassifier.embed_sets`."""
        if not isinstance(self.model, Baseline):
            kind = type(self.model).__name__
            raise InputError(f"a {kind} has no embedding: use a model with an encoder and a pooling")
        return self.model.rows(*checked_points(self, points, mask))


def ranked(logits: Float[Tensor, "B classes"]) -> Float[Tensor, "B classes"]:
    """Return logits of ordered classes. The index of the largest logit is the number of thresholds with logits t_k > 0.

    The logits of the thresholds, t_k = z_k - z_(k - 1), are sorted in descending order. The logit of class c is the sum
    of the c largest t_k. The sum grows with c as long as the t_k are positive.
    """
    steps = logits.diff(dim=1).sort(dim=1, descending=True).values.cumsum(dim=1)
    return torch.cat([torch.zeros_like(logits[:, :1]), steps], dim=1)


def count_parameters(model: nn.Module) -> int:
    """Return the number of parameters, including the fitted values in the heads of baselines."""
    baselines = [module for module in model.modules() if isinstance(module, Baseline)]
    heads = sum(buffer.numel() for baseline in baselines for buffer in baseline.head.buffers())
    return sum(parameter.numel() for parameter in model.parameters()) + heads - len(baselines)  # device anchors


def checked_points(model: Classifier, points: Any, mask: Any) -> tuple[Tensor, Tensor | None]:
    """Return points [B, n, inputs], n >= 1, with zeros at padded points; an InputError names wrong shapes."""
    # Autocast converts types of lower precision, but not double precision.
    is_cast = isinstance(points, Tensor) and points.dtype in LOWER and torch.is_autocast_enabled(points.device.type)
    points, mask = as_sets(points, mask, model.widths, None if is_cast else next(model.parameters(), None))
    if points.shape[1] == 0:
        points = points.new_zeros(points.shape[0], 1, points.shape[2])
        mask = torch.zeros(points.shape[:2], dtype=torch.bool, device=points.device)
    return zero_padded_rows(points, mask), mask
