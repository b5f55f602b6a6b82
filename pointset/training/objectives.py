"""Objectives: the sets and the loss of a training. The training loop is in `pointset.training.loop`."""

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pointset.configuration import SizeRange
from pointset.data.augment import Augmentation, Compose, turned_by_one_of
from pointset.data.batches import Batch, batches
from pointset.data.dataset import PointSets
from pointset.data.mixing import recipe_augmentations
from pointset.data.normalize import half_turns, log_size, normalization
from pointset.data.targets import UNLABELLED
from pointset.errors import PointsetError, described, quoted
from pointset.evaluation import evaluate, evaluate_points
from pointset.training.recipe import Recipe
from pointset.zoo.classifiers import Segmenter
from pointset.zoo.predicting import forward, forward_points, predict
from pointset.zoo.regressors import Regressor, sizes_of

_SIZES = 0x51
"""Keeps the draws of set sizes apart from other uses of the same seed and epoch."""
LOSSES: dict[str, Callable[..., Tensor]] = {"squared": F.mse_loss, "absolute": F.l1_loss, "huber": F.huber_loss}
VARIANCES = (-10.0, 10.0)
"""Bounds of the log of a predicted variance, standardised."""


class Loss(NamedTuple):
    """Loss and metrics of one batch."""

    mean: Float[Tensor, ""]
    """Mean loss over the sets, which is differentiated."""
    sums: Sequence[Tensor] = ()
    """Sum over the sets of each metric of the objective."""


class Objective(ABC):
    """Sets to train on, in batches of any kind, and the loss of a batch."""

    steps_per_epoch: int
    """Steps between two checkpoints."""
    metrics: Sequence[str] = ()
    """Names of the means over the sets that each epoch reports beside its loss, such as accuracy."""

    @abstractmethod
    def batches(self, epoch: int) -> Iterator[Any]:
        """The batches of one epoch, from 0; they depend on nothing that ran before."""

    @abstractmethod
    def size(self, batch: Any) -> int:
        """Number of sets in a batch."""

    def weight(self, batch: Any) -> float:
        """Weight of a batch's mean loss where parts of a batch are combined."""
        return self.size(batch)

    @abstractmethod
    def output(self, model: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """Output of the model for a batch, in float32."""

    @abstractmethod
    def loss(self, output: Tensor, batch: Any) -> Loss:
        """The value to minimise, and the sums of the metrics."""

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """Further metrics of an epoch, on sets that are not trained on."""
        return {}

    def fault(self) -> str:
        """A description of a fault in the sets, or empty; called when the loss is not finite."""
        return ""


class SetObjective(Objective):
    """Sets of shapes in batches; a validation split, if the recipe wants one, is cut from them.

    Attributes:
        train: the shapes to train on.
        validation: the others, or None.
    """

    def __init__(self, train: PointSets, recipe: Recipe, seed: int) -> None:
        require_sizes(train, recipe)
        self.validation: PointSets | None = None
        if recipe.validation > 0.0:
            train, self.validation = train.split_validation(recipe.validation, seed)
        self.train, self.recipe, self.seed = train, recipe, seed
        self.augment: Augmentation
        self.augment, self.mix = recipe_augmentations(recipe.augment, train.up)
        if len(turns := half_turns(train.options.normalize)) > 1:
            self.augment = Compose((partial(turned_by_one_of, turns), *self.augment.steps))
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
        """Number of shapes in a batch, or of labelled points."""
        return len(batch.labels)

    def output(self, model: nn.Module, batch: Batch, device: torch.device) -> Float[Tensor, "R outputs"]:
        """One row for each set, or for each real point."""
        compute = forward_points if self.train.point_classes else forward
        mask = None if batch.mask is None else batch.mask.to(device)
        return compute(model, batch.points.to(device), mask).float()

    def fault(self) -> str:
        """The first shape that is not finite or far too large, in words; empty if there is none."""
        return self.train.source_pool.fault(self.train.rows.tolist(), self.train.options.normalize)


class Classification(SetObjective):
    """Cross entropy of sets, or of their labelled points where the points have labels.

    Attributes:
        classes: names of the classes.
        weights: of the classes in the loss, or None.
    """

    metrics = ("accuracy",)

    def __init__(self, train: PointSets, recipe: Recipe, seed: int) -> None:
        super().__init__(train, recipe, seed)
        self.per_point, self.classes = bool(train.point_classes), train.point_classes or train.classes
        if not self.per_point:
            require_classes(self.train)
        elif "background" in recipe.augment:
            raise PointsetError("augment: background replaces points by others, which have no label: leave it out")
        self.weights: Tensor | None = None
        if recipe.class_weights is not None:
            labels = self.train.point_labels if self.per_point else self.train.labels
            self.weights = class_weights(recipe.class_weights, labels[labels != UNLABELLED], self.classes)
        if self.mix is not None and self.weights is not None and not self.per_point:
            raise PointsetError(
                "class_weights cannot be used with sets of two classes: leave out cutmix, or the weights"
            )

    def size(self, batch: Batch) -> int:
        return int((batch.labels != UNLABELLED).sum())

    def weight(self, batch: Batch) -> float:
        """The sum of the weights of the labels, by which `cross_entropy` divides; without weights the size."""
        if self.weights is None:
            return self.size(batch)
        return self.weights[batch.labels[batch.labels != UNLABELLED]].sum().item()

    def loss(self, output: Float[Tensor, "R classes"], batch: Batch) -> Loss:
        """Cross entropy with label smoothing, and the number of correct predictions.

        A mixed set has the cross entropies of both classes, weighted by their shares of the points; the correct
        prediction is the class of the larger share.
        """
        labels = batch.labels
        if self.per_point:
            labels = labels.flatten() if batch.mask is None else labels[batch.mask]
        labels = labels.to(output.device)
        if output.dim() != 2 or output.shape[1] != len(self.classes):
            raise PointsetError(
                f"the model gives {described(output)} for {len(labels)} {'points' if self.per_point else 'sets'} of "
                f"{len(self.classes)} classes: create it with classes={len(self.classes)}"
            )
        weights = None if self.weights is None else self.weights.to(output)
        cross_entropy = partial(F.cross_entropy, output, label_smoothing=self.recipe.label_smoothing)
        if batch.others is None or batch.shares is None:
            mean = cross_entropy(labels, weight=weights, ignore_index=UNLABELLED)
        else:
            others, shares = batch.others.to(output.device), batch.shares.to(output.device)
            own, theirs = (cross_entropy(target, reduction="none") for target in (labels, others))
            mean = torch.lerp(own, theirs, shares).mean()
            labels = torch.where(shares > 0.5, others, labels)
        return Loss(mean, [(output.detach().argmax(dim=1) == labels).sum()])

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """The accuracy on the validation split, if there is one, and the mean IoU of labelled points."""
        if self.validation is None:
            return {}
        if not self.per_point:
            return {"validation_accuracy": evaluate(model, self.validation).accuracy}
        result = evaluate_points(model, self.validation)
        return {"validation_accuracy": result.accuracy, "validation_iou": result.mean_iou}


class Regression(SetObjective):
    """Numbers of point sets, whose clouds are batched in their own units; the recipe chooses the loss.

    The regressor learns the units of the targets from the training shapes here, and each validation updates the
    residuals from which its intervals are made: intervals need a validation split.
    """

    metrics = ("mae",)

    def __init__(self, regressor: Regressor, train: PointSets, recipe: Recipe, seed: int) -> None:
        super().__init__(train, recipe, seed)
        learn_units(regressor, self.train)
        if regressor.has_variance != (recipe.loss == "gaussian"):
            needed = f"variance={not regressor.has_variance}"
            raise PointsetError(f"loss={recipe.loss!r} needs a model with {needed}: give that to create_model")
        if recipe.class_weights is not None:
            raise PointsetError(f"class_weights={quoted(recipe.class_weights)} has no effect on numbers: leave it out")
        if self.mix is not None:
            raise PointsetError(f"{recipe.augment[-1]} mixes classes, and the targets are numbers: leave it out")
        self.augment = partial(_keeping_size, self.augment, train.options.normalize)
        if self.validation is not None:
            regressor.scores = torch.full((len(train.target_names), len(self.validation)), torch.nan).to(regressor.mean)
        self.train, self.regressor = self.train.normalized("none"), regressor

    def loss(self, output: Float[Tensor, "B outputs"], batch: Batch) -> Loss:
        """The recipe's loss of standardised targets, and the sum over the sets of the mean absolute error."""
        targets = self.regressor.standardised(batch.labels.to(output.device)).to(output)
        means, logs = output[:, : targets.shape[1]], output[:, targets.shape[1] :].clamp(*VARIANCES)
        if self.recipe.loss == "gaussian":
            mean = (logs + (targets - means).square() * (-logs).exp()).mean() / 2
        else:
            mean = LOSSES[self.recipe.loss](means, targets)
        return Loss(mean, [(means.detach() - targets).abs().mean(dim=1).sum()])

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """R2 of the standardised validation targets, averaged over the targets; sets the residuals of the model."""
        if self.validation is None or self.validation.targets is None:
            return {}
        assert isinstance(model, Regressor)
        outputs = predict(model, self.validation.normalized("none")).logits
        model.calibrate(outputs, self.validation.targets.to(outputs.device))
        truth = model.standardised(self.validation.targets).cpu()
        errors = (outputs[:, : truth.shape[1]].cpu() - truth).square().mean(dim=0)
        spread = truth.var(dim=0, correction=0).clamp(min=1e-12)
        return {"validation_r2": float((1 - errors / spread).mean())}


def require_learnable(model: nn.Module, train: PointSets) -> None:
    """Raise a PointsetError if the model does not predict what the sets have: numbers, labels of points, or classes."""
    predicted = "classes"
    if isinstance(model, Regressor):
        predicted = ", ".join(model.targets)
    elif isinstance(model, Segmenter):
        predicted = "labels of points"
    learned, maker = "classes", "create_model"
    if train.targets is not None:
        learned, maker = ", ".join(train.target_names), f"create_model(..., targets={list(train.target_names)})"
    elif train.point_classes:
        learned, maker = "labels of points", "create_segmenter"
    if predicted != learned:
        data = train.name or "the data"
        raise PointsetError(
            f"the model predicts {predicted}, and {data} has {learned}: make the model with pointset.{maker}, or load "
            "the data with target= or labels= for what it predicts"
        )


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


def class_weights(wanted: str, labels: Tensor, classes: Sequence[str]) -> Float[Tensor, " classes"]:
    """The weights that `Recipe.class_weights` means for the labels of training."""
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


def learn_units(model: Regressor, train: PointSets) -> Float[Tensor, "N targets"]:
    """Set the units and the normalisation of a regressor; return the outputs that the sizes of shapes explain."""
    assert train.targets is not None
    if len(train) < 2:
        raise PointsetError(f"{train.name or 'the data'} has {len(train)} training shape: give at least 2")
    for name, values in zip(train.target_names, train.targets.T, strict=True):
        if (values == values[0]).all():
            raise PointsetError(
                f"{name} is {float(values[0]):g} for all {len(train):,} training shapes of "
                f"{train.options.targets or train.source}: there is nothing to learn, choose another target"
            )
    model.normalize = train.options.normalize
    sizes = sizes_of(train)
    model.learn_units(train.targets, sizes)
    return model.slope.cpu() * sizes[:, None]


def _keeping_size(
    augment: Augmentation, normalize: str, points: Tensor, generator: torch.Generator, mask: Tensor | None, **how: Any
) -> Tensor:
    """Augmented clouds of the size that they had: targets depend on it."""
    before = log_size(points[..., :3], mask)
    moved = normalization(normalize)(points[..., :3], mask)
    changed = augment(torch.cat([moved, points[..., 3:]], dim=2), generator, mask, **how)
    growth = (before - log_size(changed[..., :3], mask)).exp()[:, None, None]
    return torch.cat([changed[..., :3] * growth.to(points), changed[..., 3:]], dim=2)
