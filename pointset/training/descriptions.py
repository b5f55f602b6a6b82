"""Descriptions of trainings for run.json: model, data, recipe, and the weights before the first step."""

from dataclasses import replace
from typing import Any, TypedDict

import torch
from torch import Tensor, nn

from pointset.data.imperfections import THINNEST
from pointset.data.point_sets import PointSets
from pointset.data.preparation import Preparation
from pointset.errors import PointsetError
from pointset.runs.provenance import origin
from pointset.training.recipe import Recipe
from pointset.zoo.models import Spec

Weights = dict[str, Tensor]
SAME_WEIGHTS = 1e-5
"""Largest difference of the numbers of `weight_numbers`, relative to the norm, of weights that count as the same:
machines round random numbers differently."""


def preparation_of(train: PointSets, recipe: Recipe) -> Preparation:
    """Return the preparation of training for other shapes; with thinned clouds, it warns of fewer points."""
    return replace(train.preparation, least=2 * THINNEST) if "thin" in recipe.augment else train.preparation


def describe_run(model: nn.Module, train: PointSets, recipe: Recipe, seed: int) -> dict[str, Any]:
    """Describe a run of one process completely, so that it can be repeated."""
    prepared = replace(preparation_of(train, recipe), local_features=getattr(model, "local_features", "none"))
    data = train.describe() | {"preparation": prepared.as_dict()}
    return {
        "model": describe_model(model),
        "recipe": recipe.as_dict(),
        "seed": seed,
        "data": data,
        **({} if getattr(model, "temperature", 1.0) == 1.0 else {"temperature": model.temperature}),
        "processes": 1,
        **origin(),
    }


class InitialState(TypedDict):
    """Numbers that identify the weights of a model before a training, and the names of its frozen parameters."""

    norm: float
    projection: float
    frozen: list[str]


def initial_state(model: nn.Module) -> InitialState:
    """Describe the weights of a model for run.json; a PointsetError if no parameter can be trained."""
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if len(frozen) == len(list(model.parameters())):
        raise PointsetError("all parameters of the model are frozen: set requires_grad of those to train to True")
    return {**weight_numbers(model.state_dict()), "frozen": frozen}


def weight_numbers(weights: Weights) -> InitialState:
    """Return the norm of all weights, and their product with a fixed vector of the same length."""
    tensors = [weights[name] for name in sorted(weights) if weights[name].is_floating_point()]
    numbers = [tensor.detach().flatten().cpu().double() for tensor in tensors]
    whole = torch.cat(numbers) if numbers else torch.zeros(1)
    return {
        "norm": float(whole.norm()),
        "projection": float(whole @ torch.arange(len(whole)).double().sin()),
        "frozen": [],
    }


def same_weights(first: InitialState, second: InitialState) -> bool:
    """Return True if the numbers of two models are those of the same weights."""
    most = SAME_WEIGHTS * max(first["norm"], second["norm"])
    return all(abs(first[name] - second[name]) <= most for name in ("norm", "projection"))


def describe_model(model: nn.Module) -> dict[str, Any]:
    """Return the description of a model for run.json: its spec if it is from the zoo, otherwise its class."""
    spec = getattr(model, "spec", None)
    return spec.as_dict() if isinstance(spec, Spec) else {"class": type(model).__qualname__}
