"""Objectives: the sets and the loss of a training. The training loop is in `pointset.training.loop`."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import SizeRange
from pointset.data.augment import Augmentation, Compose, HalfTurns
from pointset.data.batches import Batch, batches
from pointset.data.dataset import PointSets
from pointset.data.mixing import recipe_augmentations
from pointset.data.normalize import half_turns
from pointset.data.targets import UNLABELLED
from pointset.errors import PointsetError, described, quoted
from pointset.evaluation import evaluate, evaluate_points
from pointset.training.recipe import Recipe
from pointset.zoo.classifiers import Segmenter
from pointset.zoo.predicting import forward, forward_points

_SIZES = 0x51
"""Keeps the draws of set sizes apart from other uses of the same seed and epoch."""


class Loss(NamedTuple):
    """Loss and metrics of one batch."""

    mean: Float[Tensor, ""]
    """Mean loss over the sets, which is differentiated."""
    sums: Sequence[Tensor]
    """Sum over the sets of each metric of the objective."""


class Objective(Protocol):
    """Sets to train on, in batches of any kind, and the loss of a batch."""

    steps_per_epoch: int
    """Steps between two checkpoints."""

    @property
    def metrics(self) -> Sequence[str]:
        """Names of the means over the sets that each epoch reports beside its loss, such as accuracy."""

    def batches(self, epoch: int) -> Iterator[Any]:
        """The batches of one epoch, from 0; they depend on nothing that ran before."""

    def size(self, batch: Any) -> int:
        """Number of sets in a batch."""

    def weight(self, batch: Any) -> float:
        """Weight of a batch's mean loss where parts of a batch are combined, such as its size."""

    def output(self, model: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """Output of the model for a batch, in float32."""

    def loss(self, output: Tensor, batch: Any) -> Loss:
        """The value to minimise, and the sums of the metrics."""

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """Further metrics of an epoch, on sets that are not trained on."""

    def fault(self) -> str:
        """A description of a fault in the sets, or empty; called when the loss is not finite."""


class SetObjective:
    """Sets of shapes in batches; a validation split, if the recipe wants one, is cut from them.

    Attributes:
        train: the shapes to train on.
        validation: the others, or None.
        weights: of the classes in the loss, or None.
    """

    weights: Tensor | None = None

    def __init__(self, train: PointSets, recipe: Recipe, seed: int) -> None:
        require_sizes(train, recipe)
        self.validation: PointSets | None = None
        if recipe.validation > 0.0:
            train, self.validation = train.split_validation(recipe.validation, seed)
        self.train, self.recipe, self.seed = train, recipe, seed
        self.augment: Augmentation
        self.augment, self.mix = recipe_augmentations(recipe.augment, train.up)
        if len(turns := half_turns(train.options.normalize)) > 1:
            self.augment = Compose((HalfTurns(turns), *self.augment.steps))
        self.steps_per_epoch = math.ceil(len(train) / recipe.batch_size)

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Every shape once, in random order, in sets of the recipe's sizes."""
        recipe, seed = self.recipe, self.seed
        epochs = math.ceil(recipe.total_steps(self.steps_per_epoch) / self.steps_per_epoch)
        between = recipe.sizes(epoch, epochs, self.train.size)
        size = None if between is None else partial(drawn_size, between, seed, epoch)
        return batches(
            self.train, recipe.batch_size, seed=seed, epoch=epoch, augment=self.augment, size=size, mix=self.mix
        )

    def size(self, batch: Batch) -> int:
        """Number of shapes in a batch."""
        return len(batch.labels)

    def weight(self, batch: Batch) -> float:
        """The sum of the weights of the labels, by which `cross_entropy` divides; without weights the size."""
        if self.weights is None:
            return self.size(batch)
        return self.weights[batch.labels[batch.labels != UNLABELLED]].sum().item()

    def output(self, model: nn.Module, batch: Batch, device: torch.device) -> Float[Tensor, "B outputs"]:
        """One row for each set; sets of several sizes go through `model.packed` where that is faster."""
        mask = None if batch.mask is None else batch.mask.to(device)
        return forward(model, batch.points.to(device), mask).float()

    def fault(self) -> str:
        """The first shape that is not finite or far too large, in words; empty if there is none."""
        return self.train.source_pool.fault(self.train.rows.tolist(), self.train.options.normalize)


class Classification(SetObjective):
    """Cross entropy of point sets."""

    metrics = ("accuracy",)

    def __init__(self, train: PointSets, recipe: Recipe, seed: int) -> None:
        super().__init__(train, recipe, seed)
        require_classes(self.train)
        self.weights = class_weights(recipe.class_weights, self.train.labels, self.train.classes)
        if self.mix is not None and self.weights is not None:
            raise PointsetError(
                "class_weights cannot be used with sets of two classes: leave out cutmix, or the weights"
            )

    def loss(self, output: Float[Tensor, "B classes"], batch: Batch) -> Loss:
        """Cross entropy with label smoothing, and the number of correct predictions.

        A mixed set has the cross entropies of both classes, weighted by their shares of the points; the correct
        prediction is the class of the larger share.
        """
        labels = batch.labels.to(output.device)
        if output.dim() != 2 or output.shape[1] != len(self.train.classes):
            raise PointsetError(
                f"the model gives {described(output)} for {len(labels)} sets of {len(self.train.classes)} classes: "
                f"create it with classes={len(self.train.classes)}"
            )
        smoothing = self.recipe.label_smoothing
        if batch.mixed is None:
            weights = None if self.weights is None else self.weights.to(output)
            mean = F.cross_entropy(output, labels, weights, label_smoothing=smoothing)
        else:
            others, shares = labels[batch.mixed.partners.to(output.device)], batch.mixed.shares.to(output.device)
            own, theirs = (
                F.cross_entropy(output, target, label_smoothing=smoothing, reduction="none")
                for target in (labels, others)
            )
            mean = torch.lerp(own, theirs, shares).mean()
            labels = torch.where(shares > 0.5, others, labels)
        return Loss(mean, [(output.detach().argmax(dim=1) == labels).sum()])

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """The accuracy on the validation split, if there is one."""
        if self.validation is None:
            return {}
        return {"validation_accuracy": evaluate(model, self.validation).accuracy}


def drawn_size(between: SizeRange, seed: int, epoch: int, batch: int) -> int:
    """Points of the sets of a batch: log-uniform between two bounds, both included, from (seed, epoch, batch) alone.

    Sizes of 64 to 128 are as frequent as those of 512 to 1,024; uniform draws would take half as long again.
    """
    smallest, largest = between
    share = np.random.default_rng((seed, epoch, _SIZES, batch)).random()
    return min(largest, int(smallest * ((largest + 1) / smallest) ** share))


def require_classes(train: PointSets) -> None:
    """Raise a PointsetError for shapes of fewer than two classes, which nothing can be learned from."""
    if (shown := len(train.labels.unique())) < 2:
        raise PointsetError(
            f"the training sets are of {shown} class{'es' * (shown != 1)}, and a classifier needs at least 2: give "
            "shapes of another class"
        )


def require_sizes(train: PointSets, recipe: Recipe) -> None:
    """Raise a PointsetError if the recipe has more points than any shape."""
    for name in ("train_points", "last_points"):
        if (between := getattr(recipe, name)) is not None:
            flag = f"--{name.replace('_', '-')} ..."
            train.require_size(between[1], f"{name}={list(between)} of the recipe", flag)


def class_weights(wanted: str | None, labels: Tensor, classes: Sequence[str]) -> Float[Tensor, " classes"] | None:
    """The weights that `Recipe.class_weights` means for the labels of training; None for no weights."""
    if wanted is None:
        return None
    counts = torch.bincount(labels, minlength=len(classes)).float()
    if wanted == "balanced":
        weights = counts.clamp(min=1).rsqrt()
        return weights * counts.sum() / (weights * counts).sum()
    weights = torch.ones(len(classes))
    for entry in wanted.split(","):
        name, _, number = entry.rpartition("=")
        if name.strip() not in classes or not re.fullmatch(r"\d+\.?\d*|\.\d+", number.strip()):
            raise PointsetError(
                f"class_weights must be balanced, or classes with numbers such as {classes[0]}=2, got {quoted(wanted)}"
            )
        weights[classes.index(name.strip())] = float(number)
    return weights


class PointClassification(SetObjective):
    """Cross entropy of the labelled points of sets."""

    metrics = ("accuracy",)

    def __init__(self, model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> None:
        if not train.point_classes:
            raise PointsetError(
                f"the model labels every point, and {train.name or 'the data'} was loaded without labels per point: "
                "load it with labels= (--labels COLUMN)"
            )
        if not isinstance(model, Segmenter):
            raise PointsetError(
                f"{train.name or 'the data'} has labels per point, and the model classifies whole sets: make it with "
                "pointset.create_segmenter, or load the data without labels"
            )
        if "background" in recipe.augment:
            raise PointsetError("augment: background replaces points by others, which have no label: leave it out")
        super().__init__(train, recipe, seed)
        wanted, labels = recipe.class_weights, self.train.point_labels if recipe.class_weights else torch.empty(0)
        self.weights = class_weights(wanted, labels[labels != UNLABELLED], train.point_classes)

    def size(self, batch: Batch) -> int:
        """Number of labelled points in a batch."""
        return int((batch.labels != UNLABELLED).sum())

    def output(self, model: nn.Module, batch: Batch, device: torch.device) -> Float[Tensor, "R classes"]:
        """Logits of the real points, set after set."""
        mask = None if batch.mask is None else batch.mask.to(device)
        return forward_points(model, batch.points.to(device), mask).float()

    def loss(self, output: Float[Tensor, "R classes"], batch: Batch) -> Loss:
        """Cross entropy with label smoothing over the labelled points, and the number of those that are right."""
        labels = (batch.labels.flatten() if batch.mask is None else batch.labels[batch.mask]).to(output.device)
        if output.dim() != 2 or output.shape[1] != len(self.train.point_classes):
            raise PointsetError(
                f"the model gives {described(output)} for {len(labels)} points of {len(self.train.point_classes)} "
                f"classes: create it with classes={len(self.train.point_classes)}"
            )
        weights = None if self.weights is None else self.weights.to(output)
        smoothing = self.recipe.label_smoothing
        mean = F.cross_entropy(output, labels, weights, ignore_index=UNLABELLED, label_smoothing=smoothing)
        return Loss(mean, [(output.detach().argmax(dim=1) == labels).sum()])

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """The accuracy and the mean IoU on the validation split, if there is one."""
        if self.validation is None:
            return {}
        result = evaluate_points(model, self.validation)
        return {"validation_accuracy": result.accuracy, "validation_iou": result.mean_iou}
