"""Trained models as plain data, for pages that run them in a browser.

`to_plain_data` converts a model to a tree of its modules and an array of weights. The JavaScript in
`pointset/viz/web/modules.mjs` has a class for each `kind` in the tree. A module without a counterpart there raises an
error here, before a page is made.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from pointset.errors import PointsetError
from pointset.explain.maps import attention_kinds, attentions
from pointset.nn.attention import Multihead
from pointset.nn.blocks import MAB, PMA
from pointset.nn.encoders.dumlp import Stem
from pointset.nn.layers import Masked
from pointset.nn.norms import NoNorm
from pointset.nn.pooling.dumlp import NormedLayers
from pointset.nn.pooling.statistics import StatisticPool
from pointset.nn.registry import entry_of
from pointset.nn.scores import DotScore
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.trust import Trust

LARGEST_FLOAT16 = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class PlainModel:
    """A classifier as data: a tree of its modules, and its weights as 16-bit numbers."""

    tree: dict[str, Any]
    """Plain data: `name`, `inputs`, `classes`, `normalize`, `up`, the modules `encoder`, `pool` and
    `head`, and `arrays`, the position of each array in the weights."""
    weights: bytes
    """All arrays, concatenated."""

    def __repr__(self) -> str:
        """A summary in one line."""
        classes, inputs = len(self.tree["classes"]), self.tree["inputs"]
        weights = f"{len(self.weights) / 1e3:,.0f} kB of weights"
        return f"PlainModel {self.tree['name']}: {classes} classes, {inputs} numbers of each point, {weights}"

    def as_content(self) -> dict[str, Any]:
        """Tree and weights as one mapping for JSON."""
        return {**self.tree, "weights": base64.b64encode(self.weights).decode()}


def to_plain_data(model: nn.Module, description: dict[str, Any] | None = None) -> PlainModel:
    """Convert a classifier to plain data for JavaScript.

    The logits of the data are divided by the model's temperature for the set, as `predict` divides them. Weights are
    rounded to 16 bits (`as_float16`). The trained models in this package are stored with 16 bits anyway.

    Args:
        model: a zoo model with an encoder and a pooling.
        description: the description of the run, as `load_run` returns it, for the normalisation, the classes and the
            upward axis.

    Returns:
        The model as data.

    Raises:
        PointsetError: a module has no counterpart in JavaScript (the message names it), or a weight is not finite.

    Example:
        >>> pointset.to_plain_data(pointset.create_model("rff-max", classes=2, dim=16)).tree["inputs"]
        3
    """
    name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
    if not isinstance(model, SetClassifier):
        raise PointsetError(f"{name} has no encoder and pooling, so no page can run it: use a model such as isab16-pma")
    preparation = model.preparation
    if "axes" in preparation.normalize:
        raise PointsetError(
            f"{name} turns shapes to their axes ({preparation.normalize}), and a page cannot: draw without --live"
        )
    describer, data = Describer(model), (description or {}).get("data", {})
    tree = {
        "name": name,
        "inputs": model.inputs,
        "normalize": preparation.normalize,
        "up": preparation.up,
        "points": preparation.points,
        "classes": list(data.get("classes", model.classes or [])),
        "encoder": [
            *([] if model.numbers is None else [describer.describe(model.numbers, "numbers")]),
            *describer.describe_all(model.encoder, "encoder"),
        ],
        "pool": describer.describe(model.pool, "pool"),
        "head": describer.tempered(describer.describe(model.head, "head"), model.temperature, model.trust),
        "arrays": describer.arrays,
    }
    return PlainModel(tree, bytes(describer.content))


def as_float16(tensor: Tensor) -> NDArray[np.floating[Any]]:
    """The numbers of a tensor as float16, or as float32 if one is too large for float16."""
    numbers = tensor.detach().cpu().float().numpy()
    if not np.isfinite(numbers).all():
        raise PointsetError("the model has a weight that is not finite: its training diverged, train it again")
    return numbers.astype("<f4" if np.abs(numbers).max(initial=0) > LARGEST_FLOAT16 else "<f2")


OF_TORCH: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Linear: ("weight", "bias"),
    nn.ReLU: (),
    nn.Flatten: (),
}
"""The attributes of torch's modules that their JavaScript classes need: tensors, modules, lists of them, numbers. Our
classes name theirs in `javascript`."""


class Describer:
    """Describes the modules of a model, and collects their weights."""

    def __init__(self, model: nn.Module) -> None:
        self.arrays: list[dict[str, Any]] = []  # start, shape and bits of each array in `content`
        self.content = bytearray()
        self.path = ""  # name of the module that is being described
        kinds = attention_kinds(model)
        self.attending: dict[nn.Module, dict[str, str]] = {
            module: {"layer": layer, "kind": kinds[layer][0], "points_are": kinds[layer][1]}
            for layer, module in attentions(model)
        }

    def describe(self, module: nn.Module, name: str) -> Any:
        """The description of a submodule: its JavaScript class as "kind", and the values to build it from."""
        outer, self.path = self.path, f"{self.path}.{name}".lstrip(".")
        if not type(module).__module__.startswith(("pointset.", "torch.")):
            raise self.unsupported(f"is the user-defined {type(module).__name__}")
        description = self._description(module)
        self.path = outer
        return description

    def describe_all(self, modules: Iterable[nn.Module], name: str = "") -> list[Any]:
        """The descriptions of modules that are called in turn, without those that do nothing in evaluation."""
        return [
            self.describe(module, f"{name}.{index}".lstrip("."))
            for index, module in enumerate(modules)
            if not isinstance(module, nn.Dropout | nn.Identity)
        ]

    def _description(self, module: nn.Module) -> Any:
        if isinstance(module, nn.ModuleList):
            return self.describe_all(module)
        if isinstance(module, nn.Sequential | nn.Identity | NoNorm):
            return {"kind": "Sequential", "modules": self.describe_all(module.children())}
        if isinstance(module, Masked):
            return self.describe(module.rowwise, "rowwise")
        if isinstance(module, NormedLayers):
            # Linear layers, each followed by a norm, with ReLUs between them; a stem also ends with one.
            pairs = zip(module.linear, module.norm, strict=True)
            layers = [layer for linear, norm in pairs for layer in (nn.ReLU(), linear, norm)][1:]
            modules = self.describe_all(layers + [nn.ReLU()] * isinstance(module, Stem))
            return {"kind": "Sequential", "modules": modules}
        if isinstance(module, MAB) and module.form == "paper":
            raise self.unsupported('has the form "paper"')
        if isinstance(module, PMA) and module.pooled_seeds is not None:
            raise self.unsupported("has seeds that are computed from the set")
        known = next((kind for kind in type(module).__mro__ if kind in OF_TORCH or "javascript" in vars(kind)), None)
        if known is None:
            entry = entry_of(module)
            called = f" ({entry.kind} {entry.name!r})" if entry else ""
            raise self.unsupported(f"is of type {type(module).__name__}{called}")
        if isinstance(module, Multihead):
            if type(module.score) is not DotScore:
                raise self.unsupported(f"has an {type(module.score).__name__}")
            if module.score.log_temperature is not None:
                raise self.unsupported("has a trained temperature")
            names = [str(name) for name in module.weights.names]
            if unknown := [name for name in names if name not in ("softmax", "sparsemax")]:
                raise self.unsupported(f"has {unknown[0]} weights")
            return self._fields(module, known, factor=module.score.factor, names=names)
        if isinstance(module, StatisticPool):
            if type(module).of_statistics is not StatisticPool.of_statistics:
                raise self.unsupported(f"is of type {type(module).__name__} with an of_statistics of its own")
            return self._fields(module, known, layer=self.path)
        return self._fields(module, known)

    def _fields(self, module: nn.Module, known: type[nn.Module], **values: Any) -> dict[str, Any]:
        """A description with the attributes that the JavaScript class of a known type needs."""
        for name in OF_TORCH[known] if known in OF_TORCH else vars(known)["javascript"]:
            value = getattr(module, name)
            if isinstance(value, Tensor):
                value = self.array(value)
            elif isinstance(value, nn.Module):
                value = self.describe(value, name)
            values[name] = value
        if module in self.attending:
            values["map"] = self.attending[module]
        return {"kind": known.__name__} | values

    def tempered(self, head: dict[str, Any], temperature: float, trust: Trust | None) -> dict[str, Any]:
        """A head that ends in a linear layer, with the temperature of `predict`."""
        if temperature == 1.0 and trust is None:
            return head
        *before, last = head["modules"]
        described: dict[str, Any] = {"kind": "Tempered", "before": before, "last": last, "temperature": temperature}
        if trust is not None:
            M, P = (torch.from_numpy(as_float16(each)).double() for each in (trust.means, trust.precision))
            described["trust"] = {
                "means": self.array(trust.means),
                "precision": self.array(trust.precision),
                "offsets": (M @ P * M).sum(dim=1).tolist(),
                "median": trust.median,
                "exponent": trust.exponent,
            }
        return described

    def array(self, tensor: Tensor) -> dict[str, int]:
        """Add an array to the weights, and return the reference to it."""
        numbers = as_float16(tensor)
        bits = 8 * numbers.itemsize
        self.arrays.append({"start": len(self.content), "shape": list(numbers.shape), "bits": bits})
        self.content += numbers.tobytes()
        return {"array": len(self.arrays) - 1}

    def unsupported(self, what: str) -> PointsetError:
        """The error for a property of the current module that is not implemented in JavaScript."""
        return PointsetError(
            f"{self.path} {what}, which a live page cannot compute in JavaScript: use a model such as isab16-pma"
            + ", or make a page of maps" * bool(self.attending)
        )
