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
    if "axes" in model.normalize:
        raise PlainError(
            f"{name} turns shapes to their axes ({model.normalize}), which a page cannot do: draw it without --live"
        )
    describer, data = Describer.of(model), (description or {}).get("data", {})
    tree = {
        "name": name,
        "inputs": model.inputs,
        "normalize": normalization_elsewhere(data) if "normalize" in data else model.normalize,
        "up": data.get("up") or "z",
        "temperature": temperature,
        "classes": list(data.get("classes", model.classes or [])),
        "encoder": describer.describe_all(model.encoder, "encoder"),
        "pool": describer.describe(model.pool, "pool"),
        "head": describer.describe(model.head, "head"),
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

    def describe(self, module: nn.Module, name: str) -> dict[str, Any]:
        """The description of a submodule with this name; see `describe_module`."""
        outer, self.path = self.path, f"{self.path}.{name}".lstrip(".")
        if not type(module).__module__.startswith(("pointset.", "torch.")):
            raise self.unsupported(f"is a {type(module).__name__}, which is user-defined")
        description = describe_module(module, self)
        self.path = outer
        return description

    def describe_all(self, modules: Iterable[nn.Module], name: str = "") -> list[dict[str, Any]]:
        """The descriptions of modules that are called in turn, without those that do nothing in evaluation."""
        return [
            self.describe(module, f"{name}.{index}".lstrip("."))
            for index, module in enumerate(modules)
            if not isinstance(module, Dropout | nn.Identity)
        ]

    def entry(
        self,
        module: nn.Module,
        arrays: Sequence[str] = (),
        modules: Sequence[str] = (),
        lists: Sequence[str] = (),
        **values: Any,
    ) -> dict[str, Any]:
        """A description with attributes of the module by their names: tensors, modules, and lists of modules."""
        tensors = {name: getattr(module, name) for name in arrays}
        return {
            # A subclass computes as the class that is registered.
            "kind": next(kind.__name__ for kind in type(module).__mro__ if kind in describe_module.registry),
            **{name: None if tensor is None else self.array(tensor) for name, tensor in tensors.items()},
            **{name: self.describe(getattr(module, name), name) for name in modules},
            **{name: self.describe_all(getattr(module, name), name) for name in lists},
            **values,
        }

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
    entry = part_of(module)
    called = f" ({entry.kind} {entry.name!r})" if entry else ""
    raise describer.unsupported(f"is a {type(module).__name__}{called}")


@describe_module.register
def _(module: nn.Linear, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, ["weight", "bias"])


@describe_module.register(nn.ReLU)
@describe_module.register(nn.Tanh)
@describe_module.register(nn.Flatten)
@describe_module.register(NoNorm)
def _(module: nn.Module, describer: Describer) -> dict[str, Any]:
    return describer.entry(module)


@describe_module.register(nn.Sequential)
@describe_module.register(nn.Identity)
def _(module: nn.Module, describer: Describer) -> dict[str, Any]:
    return {"kind": "Sequential", "modules": describer.describe_all(module.children())}


@describe_module.register
def _(module: Masked, describer: Describer) -> dict[str, Any]:
    return describer.describe(module.rowwise, "rowwise")


@describe_module.register(LayerNorm)
@describe_module.register(nn.LayerNorm)
def _(module: nn.LayerNorm, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, ["weight", "bias"], eps=module.eps)


@describe_module.register
def _(module: SetNorm, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, ["weight", "bias"], eps=module.eps, groups=module.groups)


@describe_module.register
def _(module: BatchNorm, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, ["weight", "bias", "running_mean", "running_var"], eps=module.eps)


@describe_module.register
def _(module: EquivariantLayer, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, modules=["gamma", "norm"], statistic=module.statistic)


@describe_module.register
def _(module: ConnectedLayers, describer: Describer) -> dict[str, Any]:
    every: Sequence[Any] = list(module.layers)
    layers = [describer.describe_all(layer, f"layers.{number}") for number, layer in enumerate(every)]
    return describer.entry(module, lists=["coordinates", "join"], layers=layers)


@describe_module.register
def _(module: Multihead, describer: Describer) -> dict[str, Any]:
    score = module.score
    if type(score) not in (DotScore, BilinearScore):
        raise describer.unsupported(f"has an {type(score).__name__}")
    if unknown := [str(name) for name in module.weights.names if name not in WEIGHTS]:
        raise describer.unsupported(f"has {unknown[0]} weights")
    return describer.entry(
        module,
        modules=["query", "key", "value", "output"],
        heads=module.heads,
        names=[str(name) for name in module.weights.names],
        factor=score.factor,
        temperatures=None if score.log_temperature is None else describer.array(score.log_temperature),
        bilinear=describer.array(score.weight) if isinstance(score, BilinearScore) else None,
        map=describer.attending[module],
    )


@describe_module.register
def _(module: MAB, describer: Describer) -> dict[str, Any]:
    norms = ["norm_query", "norm_key", "norm_hidden", "norm_attended", "norm_output"]
    return describer.entry(module, modules=["multihead", "feed_forward", *norms], form=module.form)


@describe_module.register
def _(module: SAB, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, modules=["mab"])


@describe_module.register
def _(module: ISAB, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, ["inducing_points"], ["reads", "writes"])


@describe_module.register
def _(module: PMA, describer: Describer) -> dict[str, Any]:
    pooled = None if module.pooled_seeds is None else describer.describe(module.pooled_seeds, "pooled_seeds")
    return describer.entry(module, ["seeds"], ["feed_forward", "mab"], pooled_seeds=pooled)


@describe_module.register
def _(module: PooledSeeds, describer: Describer) -> dict[str, Any]:
    return describer.entry(module.maps, ["weight", "bias"], statistics=list(module.statistics)) | {
        "kind": "PooledSeeds"
    }


@describe_module.register(NormedLayers)
@describe_module.register(Stem)
def _(module: NormedLayers, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, lists=["linear", "norm"])


@describe_module.register
def _(module: DualMLP, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, modules=["logits", "values"], map=describer.attending[module])


@describe_module.register
def _(module: InteractionLayer, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, modules=["reads", "rows", "summary", "norm"])


@describe_module.register
def _(module: StatisticPool, describer: Describer) -> dict[str, Any]:
    if type(module).of_statistics is not StatisticPool.of_statistics:
        raise describer.unsupported(f"is a {type(module).__name__} with an of_statistics of its own")
    return {"kind": "StatisticPool", "statistics": list(module.statistics), "layer": describer.path}


@describe_module.register
def _(module: AttentionPool, describer: Describer) -> dict[str, Any]:
    names = [name for name in ("sab", "feed_forward") if getattr(module, name) is not None]
    return describer.entry(
        module, modules=["pma"], then=[describer.describe(getattr(module, name), name) for name in names]
    )


@describe_module.register
def _(module: JoinedPool, describer: Describer) -> dict[str, Any]:
    return describer.entry(module, lists=["pools"])
