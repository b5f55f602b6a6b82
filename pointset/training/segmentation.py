"""The objective of labels per point: cross entropy of all labelled points."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pointset.data.batches import Batch, MixedBatch
from pointset.data.dataset import PointSets
from pointset.data.point_labels import UNLABELLED
from pointset.errors import PointsetError, described
from pointset.evaluation.points import evaluate_points
from pointset.training.objectives import Loss, SetObjective, class_weights
from pointset.training.recipe import Recipe
from pointset.zoo.predicting import forward_points
from pointset.zoo.segmenters import Segmenter


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

    def size(self, batch: Batch | MixedBatch) -> int:
        """Number of labelled points in a batch."""
        return int((batch.labels != UNLABELLED).sum())

    def output(self, model: nn.Module, batch: Batch | MixedBatch, device: torch.device) -> Float[Tensor, "R classes"]:
        """Logits of the real points, set after set."""
        mask = None if batch.mask is None else batch.mask.to(device)
        return forward_points(model, batch.points.to(device), mask).float()

    def loss(self, output: Float[Tensor, "R classes"], batch: Batch | MixedBatch) -> Loss:
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
