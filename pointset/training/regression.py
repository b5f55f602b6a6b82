"""The objective of numbers: targets are standardised, and the loss is chosen by the recipe."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from pointset.data.augment import Augmentation
from pointset.data.batches import Batch
from pointset.data.dataset import PointSets
from pointset.data.normalize import log_size, normalization
from pointset.errors import PointsetError, quoted
from pointset.training.objectives import Loss, SetObjective
from pointset.training.recipe import Recipe
from pointset.zoo.predicting import predict
from pointset.zoo.regressors import Regressor, sizes_of

FEWEST = 2
"""Training shapes."""
VARIANCES = (-10.0, 10.0)
"""Bounds of the log of a predicted variance, standardised."""


class Regression(SetObjective):
    """Numbers of point sets, whose clouds are batched in their own units.

    The regressor learns the units of the targets from the training shapes here, and each validation updates the
    residuals from which its intervals are made: intervals need a validation split.
    """

    metrics = ("mae",)

    def __init__(self, model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> None:
        regressor = _regressor_of(model, train)
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
        match self.recipe.loss:
            case "squared":
                mean = F.mse_loss(means, targets)
            case "absolute":
                mean = F.l1_loss(means, targets)
            case "huber":
                mean = F.huber_loss(means, targets)
            case "gaussian":
                mean = (logs + (targets - means).square() * (-logs).exp()).mean() / 2
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


def _regressor_of(model: nn.Module, train: PointSets) -> Regressor:
    names = ", ".join(train.target_names)
    if not isinstance(model, Regressor):
        raise PointsetError(
            f"the sets have numbers to predict ({names}), and the model classifies: make it with "
            f"create_model(..., targets={list(train.target_names)})"
        )
    if train.targets is None or model.targets != train.target_names:
        got = names or "classes"
        raise PointsetError(f"the model predicts {', '.join(model.targets)}, and the sets have {got}: give other data")
    return model


def learn_units(model: Regressor, train: PointSets) -> Float[Tensor, "N targets"]:
    """Set the units and the normalisation of a regressor; return the outputs that the sizes of shapes explain."""
    _regressor_of(model, train)
    assert train.targets is not None
    if len(train) < FEWEST:
        raise PointsetError(f"{train.name or 'the data'} has {len(train)} training shape: give at least {FEWEST}")
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
