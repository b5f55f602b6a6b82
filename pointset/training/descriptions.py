"""Descriptions of trainings for run.json: model, data, recipe, and the weights before the first step."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from pointset.data.imperfections import THINNEST
from pointset.data.options import Preparation
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.runs.provenance import origin
from pointset.training.recipe import Recipe
from pointset.zoo.models import Spec

Weights = dict[str, Tensor]


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


def initial_state(model: nn.Module) -> dict[str, Any]:
    """Describe the weights of a model for run.json; a PointsetError if no parameter can be trained."""
    frozen = [name for name, parameter in model.named_parameters() if not parameter.requires_grad]
    if len(frozen) == len(list(model.parameters())):
        raise PointsetError("all parameters of the model are frozen: set requires_grad of those to train to True")
    return {"initial_weights": weight_number(model.state_dict()), "frozen": frozen}


def weight_number(weights: Weights) -> float:
    """Return a number that other weights hardly have: their product with a fixed vector, divided by their norm.

    It has three decimals, because machines round random numbers differently.
    """
    tensors = [weights[name] for name in sorted(weights) if weights[name].is_floating_point()]
    whole = torch.cat([torch.ones(1).double(), *(tensor.detach().flatten().cpu().double() for tensor in tensors)])
    fixed = torch.arange(len(whole)).double().sin()
    return round(float(whole @ fixed / whole.norm()), 3)


def describe_model(model: nn.Module) -> dict[str, Any]:
    """Return the description of a model for run.json: its spec if it is from the zoo, otherwise its class."""
    spec = getattr(model, "spec", None)
    return spec.as_dict() if isinstance(spec, Spec) else {"class": type(model).__qualname__}
