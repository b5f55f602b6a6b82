"""The objective of labels per point: cross entropy of all labelled points."""

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pointset.data.augment import Compose, HalfTurns
from pointset.data.batches import Batch, batches
from pointset.data.dataset import PointSets
from pointset.data.mixing import recipe_augmentations
from pointset.data.normalize import half_turns
from pointset.data.point_labels import UNLABELLED
from pointset.data.pool import first_fault
from pointset.errors import PointsetError, described
from pointset.evaluation.points import evaluate_points
from pointset.training.objectives import Loss, class_weights, drawn_size, require_sizes
from pointset.training.recipe import Recipe
from pointset.zoo.predicting import forward_points
from pointset.zoo.segmenters import Segmenter


class PointClassification:
    """Cross entropy of the labelled points of sets; a validation split, if the recipe wants one, is cut from them."""

    metrics = ("accuracy",)

    def __init__(self, model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> None:
        require_sizes(train, recipe)
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
        self.validation: PointSets | None = None
        if recipe.validation > 0.0:
            train, self.validation = train.split_validation(recipe.validation, seed)
        self.train, self.recipe, self.seed = train, recipe, seed
        wanted, labels = recipe.class_weights, train.point_labels if recipe.class_weights else torch.empty(0)
        self.weights = class_weights(wanted, labels[labels != UNLABELLED], train.point_classes)
        self.augment, self.mix = recipe_augmentations(recipe.augment, train.up)
        if len(turns := half_turns(train.options.normalize)) > 1:
            self.augment = Compose((HalfTurns(turns), *self.augment.steps))
        self.steps_per_epoch = math.ceil(len(train) / recipe.batch_size)

    def batches(self, epoch: int) -> Iterator[Any]:
        """Every shape once, in random order, in sets of the recipe's sizes."""
        recipe, seed = self.recipe, self.seed
        epochs = math.ceil(recipe.total_steps(self.steps_per_epoch) / self.steps_per_epoch)
        between = recipe.sizes(epoch, epochs, self.train.size)
        size = None if between is None else partial(drawn_size, between, seed, epoch)
        return batches(
            self.train, recipe.batch_size, seed=seed, epoch=epoch, augment=self.augment, size=size, mix=self.mix
        )

    def size(self, batch: Batch) -> int:
        """Number of labelled points in a batch."""
        return int((batch.labels != UNLABELLED).sum())

    def output(self, model: nn.Module, batch: Batch, device: torch.device) -> Float[Tensor, "rows classes"]:
        """Logits of the real points, set after set."""
        mask = None if batch.mask is None else batch.mask.to(device)
        return forward_points(model, batch.points.to(device), mask).float()

    def loss(self, output: Float[Tensor, "rows classes"], batch: Batch) -> Loss:
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

    def fault(self) -> str:
        """The first shape that is not finite or far too large, in words; empty if there is none."""
        return first_fault(self.train)
