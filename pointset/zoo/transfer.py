"""Start a training from trained weights: other classes, and another axis up."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import Tensor, nn

from pointset.data.axes import UP_TO_Z, Axis
from pointset.errors import PointsetError
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.models import as_regressor, build_model
from pointset.zoo.regressors import Regressor


def start_from(
    trained: nn.Module,
    classes: Sequence[str],
    up: Axis = "z",
    *,
    trained_up: Axis = "z",
    seed: int = 0,
    start: str = "",
    freeze: Literal["none", "encoder"] = "none",
    numbers: bool = False,
) -> nn.Module:
    """A new model with the weights of a trained one; `start` says in saved runs where these come from."""
    known: list[str] = [] if numbers else list(getattr(trained, "classes", None) or [])
    if isinstance(trained, Regressor):
        trained = trained.networks[0]
    if not isinstance(trained, SetClassifier):
        raise PointsetError("a training starts from a model with an encoder and a pooling: use one of the zoo's names")
    spec: Any = trained.spec
    model = build_model(replace(spec, classes=len(classes), seed=seed, start=start, freeze=freeze))
    weights = dict(trained.state_dict())
    layer = f"head.{len(list(trained.head.children())) - 1}."
    wanted = list(classes)
    # Classes that both have, by name, keep their weights of the last layer.
    shared = [name for name in wanted if name in known]
    for name, new in model.state_dict().items():
        if name.startswith(layer) and known != wanted:
            kept = new.clone()
            kept[[wanted.index(one) for one in shared]] = weights[name][[known.index(one) for one in shared]].to(new)
            weights[name] = kept
    model.load_state_dict(weights)
    # The model sees the same shapes where another axis points up.
    turn_inputs(model, torch.tensor(UP_TO_Z[trained_up]).T @ torch.tensor(UP_TO_Z[up]))
    if freeze == "encoder":
        model.encoder.requires_grad_(False)
    return as_regressor([model], classes) if numbers else model


def turn_inputs(model: nn.Module, turn: Tensor) -> None:
    """Change a model, in place, into one that gives for X what it gave for X @ turn.T: exact, but for rounding.

    Every layer that reads coordinates is linear, so the matrix [3, 3] goes into its weights.
    """
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, nn.Linear) and module.in_features == 3:
                module.weight.copy_(module.weight @ turn.to(module.weight))
