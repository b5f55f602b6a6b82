"""The function `fit`, which trains one classifier, with the steps before and after the training loop."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pointset.arguments import suggests
from pointset.configuration import check, check_seed
from pointset.data.augmentations import SURROUNDINGS
from pointset.data.axes import UP_TO_Z
from pointset.data.dataset import PointSets
from pointset.errors import PointsetError, quoted
from pointset.inputs import require_model
from pointset.training.baselines import baseline_of, fit_baseline
from pointset.training.checkpoints import Callback, Fitted, describe_run, initial_state, preparation_of
from pointset.training.loop import Training
from pointset.training.objectives import Classification, SetLoss
from pointset.training.optimization import OptimizerBuilder
from pointset.training.recipe import Recipe
from pointset.zoo.classifiers import Classifier, SetClassifier
from pointset.zoo.local_feature_inputs import fit_local_features, turn_inputs
from pointset.zoo.models import set_preparation


@suggests
def fit(
    model: nn.Module,
    train: PointSets,
    recipe: Recipe | None = None,
    *,
    loss: SetLoss | None = None,
    optimizer: OptimizerBuilder | None = None,
    callbacks: Callback | Sequence[Callback] = (),
    seed: int = 0,
    run: str | Path | None = None,
    progress: bool = True,
) -> Fitted:
    """Train a classifier. Under a launcher, all processes call this function and get the same result.

    Args:
        model: called as `model(points [B, n, d], mask) -> logits [B, classes]` with d = `train.inputs`. It is trained
            in place. A zoo model gets the classes and the preparation of the sets, so that `model.predict(X)` then
            takes clouds in any unit. If the upward axis of these sets differs from that of an earlier training, the
            model's weights are rotated first.
        train: the training sets. The recipe's validation split is taken from these sets, separately for each class.
        recipe: options of the training. None means `Recipe()`.
        loss: called as `loss(logits [B, classes], labels [B]) -> []`, a mean over the batch, such as
            `torch.nn.CrossEntropyLoss()`. It replaces the recipe's cross entropy and label smoothing.
        optimizer: called once as `optimizer(parameters) -> torch.optim.Optimizer`, such as
            `partial(torch.optim.RMSprop, lr=1e-3)`. It replaces the recipe's optimizer, learning rate and weight decay.
            The learning rate of each parameter group is multiplied by the recipe's warm-up and schedule.
        callbacks: one function or several, called after every epoch with a copy of the new row of the history, before
            the row is saved. Under a launcher, only the main process calls them. If a callback returns True (no other
            true value), the run ends and counts as finished, and the last row has `stopped`. If an epoch is repeated
            after a kill, callbacks are called again.
        seed: seed of the order of shapes, subsets of points, augmentation, dropout and the validation split.
        run: folder for checkpoints and history. An unfinished run in the folder is continued, and a finished run is
            loaded.
        progress: show progress: a bar on a terminal, otherwise a line every half minute.

    Returns:
        The trained model, and a row for each epoch.

    Raises:
        PointsetError: if the folder holds another run (with other data, recipe, seed, initial weights, frozen
            parameters, loss or optimizer); if the folder is damaged or used by another process; if the device is not
            available; if the sets have only one class; if all parameters are frozen; if `inputs` of the model and the
            sets differ; if the number of logits is not the number of classes; or if the loss became infinite or NaN
            (the message names a shape that is not finite).
        TypeError: an argument is unknown.

    Example:
        >>> fitted = pointset.fit(model, train, pointset.Recipe(epochs=2), progress=False)
        >>> len(fitted.history), fitted.model is model
        (2, True)
    """
    require_model(model)
    check("train", train, PointSets)
    if not isinstance(recipe, Recipe | None):
        raise PointsetError(f"recipe must be a Recipe or None, got {quoted(recipe)}")
    recipe = recipe or Recipe()
    check_seed(seed)
    if loss is not None and (isinstance(loss, type) or not callable(loss)):
        wanted = "loss must be called as loss(logits, labels), as torch.nn.CrossEntropyLoss() is"
        raise PointsetError(f"{wanted}, got {quoted(loss)}")
    callbacks = [callbacks] if callable(callbacks) else callbacks
    train.require_inputs(model)
    if baseline_of(model):
        set_preparation(model, train.classes, train.preparation)
        return fit_baseline(model, train, recipe, seed, run, progress)
    if isinstance(model, Classifier):
        model.by_thresholds = recipe.ordered == "thresholds"
    turn_to_axis_of(train, model)
    start = initial_state(model)
    fit_local_features(model, train)
    # If an augmentation changes a point's neighbours, the model computes local features of the augmented batches.
    is_computed_in_batch = any(name in SURROUNDINGS for name in recipe.augment)
    sets = train if is_computed_in_batch else train.with_local_features(getattr(model, "local_features", "none"))
    objective = Classification(sets, recipe, seed, loss)
    training = Training(model, objective, recipe, seed, optimizer=optimizer, callbacks=callbacks)

    def description() -> dict[str, Any]:
        return describe_run(model, train, recipe, seed) | objective.describe() | start

    fitted = training.fit(run, description, progress)
    set_preparation(model, train.classes, preparation_of(train, recipe))
    objective.warn_of_chance(**{name: fitted.history[-1][name] for name in ("loss", "accuracy")})
    return fitted


def turn_to_axis_of(train: PointSets, model: nn.Module) -> None:
    """Rotate the inputs of a trained model to the upward axis of these sets, so that the outputs stay the same."""
    if not isinstance(model, SetClassifier) or not model.has_preparation or model.preparation.up == train.up:
        return
    if train.options.normalize != "principal-axes":  # principal axes do not depend on the upward axis
        turn_inputs(model, torch.tensor(UP_TO_Z[model.preparation.up]).T @ torch.tensor(UP_TO_Z[train.up]))
    model.preparation = replace(model.preparation, up=train.up)
