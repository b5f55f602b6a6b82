"""Objectives: the sets and the loss of a training. The training loop is in `pointset.training.loop`."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from pointset.configuration import SizeRange
from pointset.data.augmentations import recipe_augmentations
from pointset.data.batches import Batch, batches
from pointset.data.dataset import PointSets
from pointset.data.normalize import half_turns
from pointset.data.rotations import rotate_by_one_of
from pointset.data.transforms import Augmentation, Compose
from pointset.errors import PointsetError, described, warn_caller
from pointset.evaluation.predictions import evaluate_in_training
from pointset.inputs import call_model
from pointset.training.recipe import Recipe

NEAR_CHANCE = 0.97
"""If the loss is above this share of the loss of always predicting the class frequencies, the training ended at
chance."""
_SIZES = 0x51
"""Part of the seed of set sizes. It makes sizes independent of other draws for the same seed and epoch."""


SetLoss = Callable[[Tensor, Tensor], Tensor]
"""A user's loss: a function of logits [B, classes] and labels [B] that returns the mean over the batch, a scalar []."""


class Loss(NamedTuple):
    """Loss and metrics of one batch."""

    mean: Float[Tensor, ""]
    """The mean loss over the sets, from which gradients are computed."""
    sums: Sequence[Tensor] = ()
    """The sum over the sets of each metric of the objective."""


class Objective(ABC):
    """Training sets and loss. A batch is a tuple of sets [B, n, d], their mask, and further elements."""

    steps_per_epoch: int
    """Steps between two checkpoints."""
    metrics: Sequence[str] = ()
    """Names of the metrics, such as accuracy. Each epoch reports the loss, and the mean of each metric over the
    sets."""

    @abstractmethod
    def batches(self, epoch: int) -> Iterator[Any]:
        """Yield the batches of an epoch (counted from 0). They do not depend on earlier epochs."""

    def size(self, batch: Any) -> int:
        """Return the number of sets in a batch."""
        return len(batch[0])

    def weight(self, batch: Any) -> float:
        """Return the weight of the mean loss of `batch` if the loss is averaged over several parts of a batch."""
        return self.size(batch)

    def output(self, model: nn.Module, batch: Any, device: torch.device) -> Tensor:
        """Return the output of the model for a batch, in float32."""
        sets, mask, *_ = batch
        return call_model(model, sets.to(device), None if mask is None else mask.to(device)).float()

    @abstractmethod
    def loss(self, output: Tensor, batch: Any) -> Loss:
        """Return the value to minimise, and the sums of the metrics."""

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """Return metrics of an epoch on sets that are not used for training."""
        return {}

    def fault(self) -> str:
        """Return a description of a fault in the sets, or an empty text. It is called if the loss is not finite."""
        return ""


class Classification(Objective):
    """Cross entropy, or a loss for ordered classes (see `Recipe.ordered`), or a user's loss.

    Attributes:
        train: the shapes to train on.
        validation: the shapes of the validation split, or None.
        classes: names of the classes.
        weights: weights of the classes in the loss, or None.
    """

    metrics = ("accuracy",)

    def __init__(self, train: PointSets, recipe: Recipe, seed: int, own_loss: SetLoss | None = None) -> None:
        require_sizes(train, recipe)
        self.all_rows, self.own_loss = train.rows, own_loss
        self.validation: PointSets | None = None
        if recipe.validation > 0.0:
            train, self.validation = train.split_validation(recipe.validation, seed)
        self.train, self.recipe, self.seed = train, recipe, seed
        self.augment: Augmentation
        self.augment, self.mix = recipe_augmentations(recipe.augment, train.up)
        if len(turns := half_turns(train.options.normalize, train.up)) > 1:
            self.augment = Compose((partial(rotate_by_one_of, turns), *self.augment.steps))
        self.steps_per_epoch = math.ceil(len(train) / recipe.batch_size)
        require_classes(self.train)
        self.classes = train.classes
        self.weights = None if recipe.class_weights is None else balanced_weights(train.labels, len(self.classes))
        given = {"class_weights": recipe.class_weights, "ordered": recipe.ordered, "cutmix": self.mix, "loss": own_loss}
        used = [name for name, value in given.items() if value is not None]
        if len(used) > 1 and {"cutmix", "loss"} & {*used}:
            raise PointsetError(f"{used[0]} cannot be used with {used[1]}: leave out one of the two")

    def describe(self) -> dict[str, Any]:
        """Return the indices of the validation split in the training sets, and a user's loss, for run.json."""
        about: dict[str, Any] = {}
        if self.validation is not None:
            about["validation"] = torch.isin(self.all_rows, self.validation.rows).nonzero().flatten().tolist()
        if self.own_loss is not None:
            classes = len(self.classes)
            logits = torch.arange(float(classes * classes)).sin().view(classes, classes)
            value = float(self._own_loss(logits, torch.arange(classes)))
            name = getattr(self.own_loss, "__qualname__", type(self.own_loss).__qualname__)
            about["loss"] = {"name": name, "of a fixed batch": round(value, 5)}
        return about

    def warn_of_chance(self, loss: float, accuracy: float) -> None:
        """Warn if neither the last training loss nor the accuracy is clearly better than at chance (class frequencies).

        There is no warning with a user's loss, class weights, cutmix or ordered classes.
        """
        recipe, classes = self.recipe, len(self.classes)
        if self.own_loss is not None or self.weights is not None or self.mix is not None or recipe.ordered is not None:
            return
        shares = self.train.labels.bincount(minlength=classes).double().clamp(min=1e-12) / len(self.train)
        targets = (1 - recipe.label_smoothing) * shares + recipe.label_smoothing / classes
        of_frequencies = -float((targets * shares.log()).sum())
        largest = float(shares.max())  # the accuracy at chance, plus two standard deviations
        by_chance = largest + 2 * math.sqrt(largest * (1 - largest) / len(self.train))
        if loss > NEAR_CHANCE * of_frequencies and accuracy <= by_chance:
            warn_caller(
                f"training ends at chance: the loss {loss:.3f} is near {of_frequencies:.3f} of class frequencies: "
                "give more steps (epochs or steps), less dropout, or another learning_rate"
            )

    def _own_loss(self, output: Tensor, labels: Tensor) -> Tensor:
        """Return the value of the user's loss. PointsetError unless it is a tensor with one element."""
        assert self.own_loss is not None
        value = self.own_loss(output, labels)
        if not isinstance(value, Tensor) or value.numel() != 1:
            raise PointsetError(
                f"loss(logits, labels) must return the mean of a batch, a tensor [], got {described(value)}"
            )
        return value.reshape(())

    def batches(self, epoch: int) -> Iterator[Batch]:
        """Yield batches with every shape once, in random order. The recipe sets the numbers of points."""
        recipe, seed = self.recipe, self.seed
        epochs = math.ceil(recipe.total_steps(self.steps_per_epoch) / self.steps_per_epoch)
        between = recipe.sizes(epoch, epochs)
        size = None if between is None else partial(drawn_size, between, seed, epoch)
        return batches(
            self.train, recipe.batch_size, seed=seed, epoch=epoch, augment=self.augment, size=size, mix=self.mix
        )

    def fault(self) -> str:
        """Return a sentence on the first shape with infinite, NaN or far too large values, or an empty text."""
        return self.train.point_cache.fault(self.train.rows.tolist(), self.train.options.normalize)

    def weight(self, batch: Batch) -> float:
        """Return the sum of the labels' class weights (`cross_entropy` divides by it), or without weights the size."""
        if self.weights is None:
            return self.size(batch)
        return self.weights[batch.labels].sum().item()

    def loss(self, output: Float[Tensor, "B classes"], batch: Batch) -> Loss:
        """Return the loss and the number of correct predictions.

        For a set mixed by cutmix, the loss is the mean of the cross entropies with the two classes, weighted by the
        shares of their points. The class with the larger share is the correct one.
        """
        labels = batch.labels.to(output.device)
        if output.dim() != 2 or output.shape[1] != len(self.classes):
            raise PointsetError(
                f"the model gives {described(output)} for {len(labels)} sets of "
                f"{len(self.classes)} classes: create it with classes={len(self.classes)}"
            )
        if self.own_loss is not None:
            return Loss(self._own_loss(output, labels), [(output.detach().argmax(dim=1) == labels).sum()])
        weights = None if self.weights is None else self.weights.to(output)
        if self.recipe.ordered is not None:
            each = ordered_losses(output, labels, self.recipe.ordered)
            share = torch.ones_like(each) if weights is None else weights[labels]
            thresholds = self.recipe.ordered == "thresholds"
            ranks = (output.diff(dim=1) > 0).sum(dim=1) if thresholds else output.detach().argmax(dim=1)
            return Loss((share * each).sum() / share.sum(), [(ranks == labels).sum()])
        cross_entropy = partial(F.cross_entropy, output, label_smoothing=self.recipe.label_smoothing)
        if batch.others is None or batch.shares is None:
            mean = cross_entropy(labels, weight=weights)
        else:
            others, shares = batch.others.to(output.device), batch.shares.to(output.device)
            own, theirs = (cross_entropy(target, reduction="none") for target in (labels, others))
            mean = torch.lerp(own, theirs, shares).mean()
            labels = torch.where(shares > 0.5, others, labels)
        return Loss(mean, [(output.detach().argmax(dim=1) == labels).sum()])

    def validate(self, model: nn.Module) -> Mapping[str, float]:
        """Return the accuracy on the validation split, if there is one."""
        if self.validation is None:
            return {}
        return {"validation_accuracy": evaluate_in_training(model, self.validation).accuracy}


def ordered_losses(
    output: Float[Tensor, "B classes"], labels: Int[Tensor, " B"], ordered: Literal["soft", "thresholds"]
) -> Float[Tensor, " B"]:
    """Return the loss of each set for K ordered classes 0, 1, ..., from K outputs z (see `Recipe.ordered`).

    "soft" is the cross entropy with the soft labels d_k = exp(-|k - label|) / sum. "thresholds" is the mean binary
    cross entropy of K - 1 classifiers with the logits t_k = z_k - z_(k - 1), for "the class is k or higher".
    """
    classes = torch.arange(output.shape[1], device=output.device)
    if ordered == "soft":
        targets = (-(classes - labels[:, None]).abs().to(output)).softmax(dim=1)
        return -(targets * output.log_softmax(dim=1)).sum(dim=1)
    reached = (labels[:, None] >= classes[1:]).to(output)
    return F.binary_cross_entropy_with_logits(output.diff(dim=1), reached, reduction="none").mean(dim=1)


def drawn_size(between: SizeRange, seed: int, epoch: int, batch: int) -> int:
    """Return the number of points per set of a batch, drawn log-uniformly between two bounds by (seed, epoch, batch).

    Sizes of 64 to 128 are as frequent as sizes of 512 to 1,024. With uniform sizes, training would take 1.5 times as
    long.
    """
    smallest, largest = between
    share = np.random.default_rng((seed, epoch, _SIZES, batch)).random()
    return min(largest, int(smallest * ((largest + 1) / smallest) ** share))


def require_classes(train: PointSets) -> None:
    """Raise a PointsetError if the shapes are of fewer than two classes."""
    if (shown := len(train.labels.unique())) < 2:
        raise PointsetError(
            f"the training sets are of {shown} class{'es' * (shown != 1)}, and a classifier needs at least 2: give "
            "shapes of another class"
        )


def require_sizes(train: PointSets, recipe: Recipe) -> None:
    """Raise a PointsetError if a size in the recipe is larger than the number of points of the shapes."""
    for name in ("train_points", "last_points"):
        if (between := getattr(recipe, name)) is not None:
            flag = f"--{name.replace('_', '-')} ..."
            train.require_size(between[1], f"{name}={list(between)} of the recipe", flag)


def balanced_weights(labels: Tensor, classes: int) -> Float[Tensor, " classes"]:
    """Return the class weights of `Recipe.class_weights` for these training labels."""
    counts = torch.bincount(labels, minlength=classes).float()
    weights = counts.clamp(min=1).rsqrt()
    return weights * counts.sum() / (weights * counts).sum()
