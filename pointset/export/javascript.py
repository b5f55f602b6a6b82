"""Trained models as plain data, for programs that compute what they compute without Python: pages in a browser.

`describe_plainly` takes a model apart into a tree of parts with numbers beside it. `plainly` chooses by the type of a
module; its `register` teaches it another one. The page's modules (`pointset/viz/web`) have a class of the same name for
each. A part that has no counterpart there is refused here, before a page is made.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from pointset.configuration import Positive
from pointset.data.loading import normalization_elsewhere
from pointset.errors import PointsetError
from pointset.explain.maps import attention_kinds, attentions
from pointset.inputs import takes
from pointset.nn.attention import Multihead
from pointset.nn.blocks import ISAB, MAB, PMA, SAB
from pointset.nn.dropout import Dropout
from pointset.nn.dual_mlp import DualMLP, NormedLayers
from pointset.nn.encoders.dumlp import InteractionLayer, Stem
from pointset.nn.encoders.rffp import EquivariantLayer
from pointset.nn.layers import ConnectedLayers
from pointset.nn.norms import BatchNorm, LayerNorm, NoNorm, SetNorm
from pointset.nn.pooling.joined import JoinedPool
from pointset.nn.pooling.pma import AttentionPool
from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import part_of
from pointset.nn.rowwise import Masked
from pointset.nn.scores import BilinearScore, DotScore
from pointset.nn.seeds import PooledSeeds
from pointset.nn.weights import Weights
from pointset.zoo.classifiers import SetClassifier

LARGEST = float(np.finfo(np.float16).max)
WEIGHTS = ("softmax", "sparsemax")
"""Weights functions that the page's modules have."""


class PlainError(PointsetError):
    """A part of a model has no counterpart in JavaScript; the message names it."""


@dataclass(frozen=True)
class PlainModel:
    """A classifier as data: numbers of 16 bits, and a tree that says what is done with them.

    Example:
        >>> plain = pointset.describe_plainly(model)
        >>> plain.tree["pool"]["kind"]
        'AttentionPool'
    """

    tree: dict[str, Any]
    """Plain data: `name`, `inputs`, `classes`, `normalize`, `up`, `temperature`, parts `encoder`, `pool` and `head`,
    and `arrays`, where in the weights each array lies."""
    weights: bytes
    """All arrays, one after the other."""

    def __repr__(self) -> str:
        """What it is, in a line."""
        classes, inputs = len(self.tree["classes"]), self.tree["inputs"]
        return (
            f"PlainModel {self.tree['name']}: {classes} classes, {inputs} numbers of each point, "
            f"{len(self.weights) / 1e3:,.0f} kB of weights"
        )

    def as_content(self) -> dict[str, Any]:
        """Both as one mapping for JSON."""
        return {**self.tree, "weights": base64.b64encode(self.weights).decode()}


@takes(model=nn.Module, description=dict | None, temperature=Positive)
def describe_plainly(
    model: nn.Module, description: dict[str, Any] | None = None, *, temperature: float = 1.0
) -> PlainModel:
    """Take a classifier apart for a program in JavaScript.

    Weights are rounded to 16 bits (`rounded`); those of the trained models that come with the package have no more.

    Args:
        model: of the zoo, with an encoder and a pooling.
        description: the run's, as `load_run` returns it, for the normalisation, the classes and the upward axis.
        temperature: by which logits are divided for probabilities.

    Returns:
        The model as data.

    Raises:
        PointsetError: a part of it has no counterpart in JavaScript, and is named; or a weight is not finite.

    Example:
        >>> pointset.describe_plainly(pointset.create_model("rff-max", classes=2, dim=16)).tree["inputs"]
        3
    """
    name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
    if not isinstance(model, SetClassifier):
        raise PlainError(f"{name} has no encoder and pooling that JavaScript knows: take a model such as isab16-pma")
    teller, data = Teller.of(model), (description or {}).get("data", {})
    tree = {
        "name": name,
        "inputs": model.inputs,
        "normalize": normalization_elsewhere(data) if "normalize" in data else model.normalize,
        "up": data.get("up") or "z",
        "temperature": temperature,
        "classes": list(data.get("classes", model.classes or [])),
        "encoder": teller.parts(model.encoder, "encoder"),
        "pool": teller.part(model.pool, "pool"),
        "head": teller.part(model.head, "head"),
        "arrays": teller.arrays,
    }
    return PlainModel(tree, bytes(teller.content))


def rounded(tensor: Tensor) -> NDArray[np.floating[Any]]:
    """The numbers of a tensor as a page has them: of 16 bits, or of 32 where one is too large for those.

    Raises:
        PointsetError: one is not finite.
    """
    numbers = tensor.detach().cpu().float().numpy()
    if not np.isfinite(numbers).all():
        raise PlainError("the model has a weight that is not finite: its training went wrong")
    return numbers.astype("<f4" if np.abs(numbers).max(initial=0) > LARGEST else "<f2")


@dataclass
class Teller:
    """Tells of a model's parts, and gathers their numbers."""

    attending: dict[nn.Module, dict[str, str]]
    """What is known of the maps of each attention."""
    arrays: list[dict[str, Any]] = field(default_factory=list)
    content: bytearray = field(default_factory=bytearray)
    path: str = ""

    @staticmethod
    def of(model: nn.Module) -> Teller:
        """For the parts of this model."""
        kinds = attention_kinds(model)
        known: dict[nn.Module, dict[str, str]] = {
            module: {"layer": layer, "kind": kinds[layer][0], "points_are": kinds[layer][1]}
            for layer, module in attentions(model)
        }
        return Teller(known)

    def part(self, module: nn.Module, name: str) -> dict[str, Any]:
        """A module by the name of its counterpart, and what that is built from."""
        outer, self.path = self.path, f"{self.path}.{name}".lstrip(".")
        if not type(module).__module__.startswith(("pointset.", "torch.")):
            raise self.refused(f"is a {type(module).__name__}, which is user-defined")
        told = plainly(module, self)
        self.path = outer
        return told

    def parts(self, modules: Iterable[nn.Module], name: str = "") -> list[dict[str, Any]]:
        """Modules that are called in turn; what does nothing outside training is left out."""
        return [
            self.part(module, f"{name}.{place}".lstrip("."))
            for place, module in enumerate(modules)
            if not isinstance(module, Dropout | nn.Identity)
        ]

    def named(self, module: nn.Module, *names: str) -> dict[str, Any]:
        """Modules that another holds, by their names there."""
        return {name: self.part(getattr(module, name), name) for name in names}

    def array(self, tensor: Tensor) -> int:
        """The number of an array, which is kept."""
        numbers = rounded(tensor)
        bits = 8 * numbers.itemsize
        self.arrays.append({"start": len(self.content), "shape": list(numbers.shape), "bits": bits})
        self.content += numbers.tobytes()
        return len(self.arrays) - 1

    def refused(self, what: str) -> PlainError:
        """The error for something at this place that pages cannot compute."""
        return PlainError(
            f"{self.path} {what}, which a live page cannot compute in JavaScript: take a model such as isab16-pma, "
            "or make a page of maps"
        )


@singledispatch
def plainly(module: nn.Module, teller: Teller) -> dict[str, Any]:
    """What JavaScript has to know of a module: the name of its counterpart under "kind", and what that is built from.

    Raises:
        PointsetError: it has none.
    """
    part = part_of(module)
    called = f" ({part.kind} {part.name!r})" if part else ""
    raise teller.refused(f"is a {type(module).__name__}{called}")


@plainly.register
def _(module: nn.Linear, teller: Teller) -> dict[str, Any]:
    bias = None if module.bias is None else teller.array(module.bias)
    return {"kind": "Linear", "weight": teller.array(module.weight), "bias": bias}


@plainly.register(nn.ReLU)
@plainly.register(nn.Tanh)
@plainly.register(nn.Flatten)
@plainly.register(NoNorm)
def _(module: nn.Module, teller: Teller) -> dict[str, Any]:
    return {"kind": type(module).__name__}


@plainly.register
def _(module: nn.Sequential, teller: Teller) -> dict[str, Any]:
    return {"kind": "Sequential", "modules": teller.parts(module)}


@plainly.register
def _(module: nn.Identity, teller: Teller) -> dict[str, Any]:
    return {"kind": "Sequential", "modules": []}


@plainly.register
def _(module: Masked, teller: Teller) -> dict[str, Any]:
    return teller.part(module.rowwise, "rowwise")


@plainly.register(LayerNorm)
@plainly.register(nn.LayerNorm)
def _(module: nn.LayerNorm, teller: Teller) -> dict[str, Any]:
    return {"kind": "LayerNorm", **_scale(module, teller), "eps": module.eps}


@plainly.register
def _(module: SetNorm, teller: Teller) -> dict[str, Any]:
    return {"kind": "SetNorm", **_scale(module, teller), "eps": module.eps, "groups": module.groups}


@plainly.register
def _(module: BatchNorm, teller: Teller) -> dict[str, Any]:
    mean, variance = module.running_mean, module.running_var
    assert isinstance(mean, Tensor)
    assert isinstance(variance, Tensor)
    trained = {"mean": teller.array(mean), "variance": teller.array(variance), "eps": module.eps}
    return {"kind": "BatchNorm", **_scale(module, teller), **trained}


def _scale(module: Any, teller: Teller) -> dict[str, int]:
    return {"weight": teller.array(module.weight), "bias": teller.array(module.bias)}


@plainly.register
def _(module: EquivariantLayer, teller: Teller) -> dict[str, Any]:
    return {"kind": "EquivariantLayer", "statistic": module.statistic, **teller.named(module, "gamma", "norm")}


@plainly.register
def _(module: ConnectedLayers, teller: Teller) -> dict[str, Any]:
    layers: Sequence[Any] = list(module.layers)
    return {
        "kind": "ConnectedLayers",
        "layers": [teller.parts(layer, f"layers.{number}") for number, layer in enumerate(layers)],
        "coordinates": teller.parts(module.coordinates, "coordinates"),
        "join": teller.parts(module.join, "join"),
    }


@plainly.register
def _(module: Multihead, teller: Teller) -> dict[str, Any]:
    score, names = module.score, _weights(module.weights, teller)
    if type(score) not in (DotScore, BilinearScore):
        raise teller.refused(f"has an {type(score).__name__}")
    trained = score.log_temperature
    return {
        "kind": "Multihead",
        "heads": module.heads,
        "names": names,
        "factor": score.factor,
        "temperatures": None if trained is None else teller.array(trained),
        "bilinear": teller.array(score.weight) if isinstance(score, BilinearScore) else None,
        **teller.named(module, "query", "key", "value", "output"),
        "map": teller.attending[module],
    }


def _weights(weights: Weights, teller: Teller) -> list[str]:
    if unknown := [str(name) for name in weights.names if name not in WEIGHTS]:
        raise teller.refused(f"has {unknown[0]} weights")
    return [str(name) for name in weights.names]


@plainly.register
def _(module: MAB, teller: Teller) -> dict[str, Any]:
    norms = ("norm_query", "norm_key", "norm_hidden", "norm_attended", "norm_output")
    return {"kind": "MAB", "form": module.form, **teller.named(module, "multihead", "feed_forward", *norms)}


@plainly.register
def _(module: SAB, teller: Teller) -> dict[str, Any]:
    return {"kind": "SAB", **teller.named(module, "mab")}


@plainly.register
def _(module: ISAB, teller: Teller) -> dict[str, Any]:
    points = teller.array(module.inducing_points)
    return {"kind": "ISAB", "inducing_points": points, **teller.named(module, "reads", "writes")}


@plainly.register
def _(module: PMA, teller: Teller) -> dict[str, Any]:
    pooled = module.pooled_seeds
    return {
        "kind": "PMA",
        "seeds": None if module.seeds is None else teller.array(module.seeds),
        "pooled_seeds": None if pooled is None else teller.part(pooled, "pooled_seeds"),
        **teller.named(module, "feed_forward", "mab"),
    }


@plainly.register
def _(module: PooledSeeds, teller: Teller) -> dict[str, Any]:
    return {"kind": "PooledSeeds", "statistics": list(module.statistics), **_scale(module.maps, teller)}


@plainly.register(NormedLayers)
@plainly.register(Stem)
def _(module: NormedLayers, teller: Teller) -> dict[str, Any]:
    lists = {"linear": teller.parts(module.linear, "linear"), "norm": teller.parts(module.norm, "norm")}
    return {"kind": type(module).__name__, **lists}


@plainly.register
def _(module: DualMLP, teller: Teller) -> dict[str, Any]:
    return {"kind": "DualMLP", **teller.named(module, "logits", "values"), "map": teller.attending[module]}


@plainly.register
def _(module: InteractionLayer, teller: Teller) -> dict[str, Any]:
    return {"kind": "InteractionLayer", **teller.named(module, "reads", "rows", "summary", "norm")}


@plainly.register
def _(module: StatisticPool, teller: Teller) -> dict[str, Any]:
    if type(module).of_statistics is not StatisticPool.of_statistics:
        raise teller.refused(f"is a {type(module).__name__} with an of_statistics of its own")
    return {"kind": "StatisticPool", "statistics": list(module.statistics), "layer": teller.path}


@plainly.register
def _(module: AttentionPool, teller: Teller) -> dict[str, Any]:
    then = {name: one for name in ("sab", "feed_forward") if (one := getattr(module, name)) is not None}
    last = [teller.part(one, name) for name, one in then.items()]
    return {"kind": "AttentionPool", "pma": teller.part(module.pma, "pma"), "then": last}


@plainly.register
def _(module: JoinedPool, teller: Teller) -> dict[str, Any]:
    return {"kind": "JoinedPool", "pools": teller.parts(module.pools, "pools")}
