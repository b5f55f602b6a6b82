"""Trained models as plain data, for pages that run them in a browser.

`describe_plainly` converts a model to a tree of its modules and an array of weights. `describe_module` dispatches on
the type of a module; its `register` adds a type. The JavaScript in `pointset/viz/web` has a class for each `kind` in
the tree. A module without a counterpart there raises an error here, before a page is made.
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

from pointset.data.loading import normalization_elsewhere
from pointset.errors import PointsetError
from pointset.explain.maps import attention_kinds, attentions
from pointset.nn.attention import Multihead
from pointset.nn.blocks import ISAB, MAB, PMA, SAB, PooledSeeds
from pointset.nn.dropout import Dropout
from pointset.nn.encoders.dumlp import InteractionLayer, Stem
from pointset.nn.encoders.rffp import EquivariantLayer
from pointset.nn.layers import ConnectedLayers, Masked
from pointset.nn.norms import BatchNorm, LayerNorm, NoNorm, SetNorm
from pointset.nn.pooling.dumlp import DualMLP, NormedLayers
from pointset.nn.pooling.joined import JoinedPool
from pointset.nn.pooling.pma import AttentionPool
from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import part_of
from pointset.nn.scores import BilinearScore, DotScore
from pointset.nn.weights import Weights
from pointset.zoo.classifiers import SetClassifier

LARGEST = float(np.finfo(np.float16).max)
WEIGHTS = ("softmax", "sparsemax")
"""Weights functions that are implemented in JavaScript."""


class PlainError(PointsetError):
    """A module of a model has no counterpart in JavaScript; the message names it."""


@dataclass(frozen=True)
class PlainModel:
    """A classifier as data: a tree of its modules, and its weights as 16-bit numbers.

    Example:
        >>> plain = pointset.describe_plainly(model)
        >>> plain.tree["pool"]["kind"]
        'AttentionPool'
    """

    tree: dict[str, Any]
    """Plain data: `name`, `inputs`, `classes`, `normalize`, `up`, `temperature`, the modules `encoder`, `pool` and
    `head`, and `arrays`, the position of each array in the weights."""
    weights: bytes
    """All arrays, concatenated."""

    def __repr__(self) -> str:
        """A summary in one line."""
        classes, inputs = len(self.tree["classes"]), self.tree["inputs"]
        return (
            f"PlainModel {self.tree['name']}: {classes} classes, {inputs} numbers of each point, "
            f"{len(self.weights) / 1e3:,.0f} kB of weights"
        )

    def as_content(self) -> dict[str, Any]:
        """Tree and weights as one mapping for JSON."""
        return {**self.tree, "weights": base64.b64encode(self.weights).decode()}


def describe_plainly(
    model: nn.Module, description: dict[str, Any] | None = None, *, temperature: float = 1.0
) -> PlainModel:
    """Convert a classifier to plain data for JavaScript.

    Weights are rounded to 16 bits (`rounded`). The trained models in this package are stored with 16 bits anyway.

    Args:
        model: a zoo model with an encoder and a pooling.
        description: the description of the run, as `load_run` returns it, for the normalisation, the classes and the
            upward axis.
        temperature: divides the logits before the softmax.

    Returns:
        The model as data.

    Raises:
        PointsetError: a module has no counterpart in JavaScript (the message names it), or a weight is not finite.

    Example:
        >>> pointset.describe_plainly(pointset.create_model("rff-max", classes=2, dim=16)).tree["inputs"]
        3
    """
    name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
    if not isinstance(model, SetClassifier):
        raise PlainError(
            f"{name} has no encoder and pooling, so it cannot run in a page: use a model such as isab16-pma"
        )
    describer, data = Describer.of(model), (description or {}).get("data", {})
    tree = {
        "name": name,
        "inputs": model.inputs,
        "normalize": normalization_elsewhere(data) if "normalize" in data else model.normalize,
        "up": data.get("up") or "z",
        "temperature": temperature,
        "classes": list(data.get("classes", model.classes or [])),
        "encoder": describer.parts(model.encoder, "encoder"),
        "pool": describer.part(model.pool, "pool"),
        "head": describer.part(model.head, "head"),
        "arrays": describer.arrays,
    }
    return PlainModel(tree, bytes(describer.content))


def rounded(tensor: Tensor) -> NDArray[np.floating[Any]]:
    """The numbers of a tensor as float16, or as float32 if one is too large for float16.

    Raises:
        PointsetError: a number is not finite.
    """
    numbers = tensor.detach().cpu().float().numpy()
    if not np.isfinite(numbers).all():
        raise PlainError("the model has a weight that is not finite: its training diverged, train it again")
    return numbers.astype("<f4" if np.abs(numbers).max(initial=0) > LARGEST else "<f2")


@dataclass
class Describer:
    """Describes the modules of a model, and collects their weights."""

    attending: dict[nn.Module, dict[str, str]]
    """For each attention: layer, kind, and which side are the points."""
    arrays: list[dict[str, Any]] = field(default_factory=list)
    """Start, shape and bits of each array in `content`."""
    content: bytearray = field(default_factory=bytearray)
    path: str = ""
    """Name, inside the model, of the module that is being described."""

    @staticmethod
    def of(model: nn.Module) -> Describer:
        """A describer for the modules of this model."""
        kinds = attention_kinds(model)
        known: dict[nn.Module, dict[str, str]] = {
            module: {"layer": layer, "kind": kinds[layer][0], "points_are": kinds[layer][1]}
            for layer, module in attentions(model)
        }
        return Describer(known)

    def part(self, module: nn.Module, name: str) -> dict[str, Any]:
        """The description of a submodule with this name; see `describe_module`."""
        outer, self.path = self.path, f"{self.path}.{name}".lstrip(".")
        if not type(module).__module__.startswith(("pointset.", "torch.")):
            raise self.unsupported(f"is a {type(module).__name__}, which is user-defined")
        description = describe_module(module, self)
        self.path = outer
        return description

    def parts(self, modules: Iterable[nn.Module], name: str = "") -> list[dict[str, Any]]:
        """The descriptions of modules that are called in turn, without those that do nothing in evaluation."""
        return [
            self.part(module, f"{name}.{place}".lstrip("."))
            for place, module in enumerate(modules)
            if not isinstance(module, Dropout | nn.Identity)
        ]

    def named(self, module: nn.Module, *names: str) -> dict[str, Any]:
        """The descriptions of attributes of a module, by their names."""
        return {name: self.part(getattr(module, name), name) for name in names}

    def array(self, tensor: Tensor) -> dict[str, int]:
        """Add an array to the weights, and return the reference to it."""
        numbers = rounded(tensor)
        bits = 8 * numbers.itemsize
        self.arrays.append({"start": len(self.content), "shape": list(numbers.shape), "bits": bits})
        self.content += numbers.tobytes()
        return {"array": len(self.arrays) - 1}

    def unsupported(self, what: str) -> PlainError:
        """The error for a property of the current module that is not implemented in JavaScript."""
        return PlainError(
            f"{self.path} {what}, which a live page cannot compute in JavaScript: use a model such as isab16-pma, "
            "or make a page of maps"
        )


@singledispatch
def describe_module(module: nn.Module, describer: Describer) -> dict[str, Any]:
    """The description of a module: the name of its JavaScript class under "kind", and the values to build it from.

    Raises:
        PointsetError: there is no JavaScript class for it.
    """
    part = part_of(module)
    called = f" ({part.kind} {part.name!r})" if part else ""
    raise describer.unsupported(f"is a {type(module).__name__}{called}")


@describe_module.register
def _(module: nn.Linear, describer: Describer) -> dict[str, Any]:
    bias = None if module.bias is None else describer.array(module.bias)
    return {"kind": "Linear", "weight": describer.array(module.weight), "bias": bias}


@describe_module.register(nn.ReLU)
@describe_module.register(nn.Tanh)
@describe_module.register(nn.Flatten)
@describe_module.register(NoNorm)
def _(module: nn.Module, describer: Describer) -> dict[str, Any]:
    return {"kind": type(module).__name__}


@describe_module.register
def _(module: nn.Sequential, describer: Describer) -> dict[str, Any]:
    return {"kind": "Sequential", "modules": describer.parts(module)}


@describe_module.register
def _(module: nn.Identity, describer: Describer) -> dict[str, Any]:
    return {"kind": "Sequential", "modules": []}


@describe_module.register
def _(module: Masked, describer: Describer) -> dict[str, Any]:
    return describer.part(module.rowwise, "rowwise")


@describe_module.register(LayerNorm)
@describe_module.register(nn.LayerNorm)
def _(module: nn.LayerNorm, describer: Describer) -> dict[str, Any]:
    return {"kind": "LayerNorm", **_scale(module, describer), "eps": module.eps}


@describe_module.register
def _(module: SetNorm, describer: Describer) -> dict[str, Any]:
    return {"kind": "SetNorm", **_scale(module, describer), "eps": module.eps, "groups": module.groups}


@describe_module.register
def _(module: BatchNorm, describer: Describer) -> dict[str, Any]:
    mean, variance = module.running_mean, module.running_var
    assert isinstance(mean, Tensor)
    assert isinstance(variance, Tensor)
    trained = {"mean": describer.array(mean), "variance": describer.array(variance), "eps": module.eps}
    return {"kind": "BatchNorm", **_scale(module, describer), **trained}


def _scale(module: Any, describer: Describer) -> dict[str, Any]:
    return {"weight": describer.array(module.weight), "bias": describer.array(module.bias)}


@describe_module.register
def _(module: EquivariantLayer, describer: Describer) -> dict[str, Any]:
    return {"kind": "EquivariantLayer", "statistic": module.statistic, **describer.named(module, "gamma", "norm")}


@describe_module.register
def _(module: ConnectedLayers, describer: Describer) -> dict[str, Any]:
    layers: Sequence[Any] = list(module.layers)
    return {
        "kind": "ConnectedLayers",
        "layers": [describer.parts(layer, f"layers.{number}") for number, layer in enumerate(layers)],
        "coordinates": describer.parts(module.coordinates, "coordinates"),
        "join": describer.parts(module.join, "join"),
    }


@describe_module.register
def _(module: Multihead, describer: Describer) -> dict[str, Any]:
    score, names = module.score, _weights(module.weights, describer)
    if type(score) not in (DotScore, BilinearScore):
        raise describer.unsupported(f"has an {type(score).__name__}")
    trained = score.log_temperature
    return {
        "kind": "Multihead",
        "heads": module.heads,
        "names": names,
        "factor": score.factor,
        "temperatures": None if trained is None else describer.array(trained),
        "bilinear": describer.array(score.weight) if isinstance(score, BilinearScore) else None,
        **describer.named(module, "query", "key", "value", "output"),
        "map": describer.attending[module],
    }


def _weights(weights: Weights, describer: Describer) -> list[str]:
    if unknown := [str(name) for name in weights.names if name not in WEIGHTS]:
        raise describer.unsupported(f"has {unknown[0]} weights")
    return [str(name) for name in weights.names]


@describe_module.register
def _(module: MAB, describer: Describer) -> dict[str, Any]:
    norms = ("norm_query", "norm_key", "norm_hidden", "norm_attended", "norm_output")
    return {"kind": "MAB", "form": module.form, **describer.named(module, "multihead", "feed_forward", *norms)}


@describe_module.register
def _(module: SAB, describer: Describer) -> dict[str, Any]:
    return {"kind": "SAB", **describer.named(module, "mab")}


@describe_module.register
def _(module: ISAB, describer: Describer) -> dict[str, Any]:
    points = describer.array(module.inducing_points)
    return {"kind": "ISAB", "inducing_points": points, **describer.named(module, "reads", "writes")}


@describe_module.register
def _(module: PMA, describer: Describer) -> dict[str, Any]:
    pooled = module.pooled_seeds
    return {
        "kind": "PMA",
        "seeds": None if module.seeds is None else describer.array(module.seeds),
        "pooled_seeds": None if pooled is None else describer.part(pooled, "pooled_seeds"),
        **describer.named(module, "feed_forward", "mab"),
    }


@describe_module.register
def _(module: PooledSeeds, describer: Describer) -> dict[str, Any]:
    return {"kind": "PooledSeeds", "statistics": list(module.statistics), **_scale(module.maps, describer)}


@describe_module.register(NormedLayers)
@describe_module.register(Stem)
def _(module: NormedLayers, describer: Describer) -> dict[str, Any]:
    lists = {"linear": describer.parts(module.linear, "linear"), "norm": describer.parts(module.norm, "norm")}
    return {"kind": type(module).__name__, **lists}


@describe_module.register
def _(module: DualMLP, describer: Describer) -> dict[str, Any]:
    return {"kind": "DualMLP", **describer.named(module, "logits", "values"), "map": describer.attending[module]}


@describe_module.register
def _(module: InteractionLayer, describer: Describer) -> dict[str, Any]:
    return {"kind": "InteractionLayer", **describer.named(module, "reads", "rows", "summary", "norm")}


@describe_module.register
def _(module: StatisticPool, describer: Describer) -> dict[str, Any]:
    if type(module).of_statistics is not StatisticPool.of_statistics:
        raise describer.unsupported(f"is a {type(module).__name__} with an of_statistics of its own")
    return {"kind": "StatisticPool", "statistics": list(module.statistics), "layer": describer.path}


@describe_module.register
def _(module: AttentionPool, describer: Describer) -> dict[str, Any]:
    then = {name: one for name in ("sab", "feed_forward") if (one := getattr(module, name)) is not None}
    last = [describer.part(one, name) for name, one in then.items()]
    return {"kind": "AttentionPool", "pma": describer.part(module.pma, "pma"), "then": last}


@describe_module.register
def _(module: JoinedPool, describer: Describer) -> dict[str, Any]:
    return {"kind": "JoinedPool", "pools": describer.parts(module.pools, "pools")}
