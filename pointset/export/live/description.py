"""Descriptions of trained models as plain data for the JavaScript of the live page.

A description is a tree of the model's modules and an array of its weights. `web/modules.mjs` has a function for each
`kind` in the tree, and `FIELDS` here names the attributes that each function needs. If a module has no JavaScript
implementation, the description raises an error that names it, before a page is made.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from pointset.data.local_features import CONSTANTS
from pointset.errors import PointsetError
from pointset.explain.recording import attention_kinds, attentions
from pointset.nn.attention import Multihead
from pointset.nn.blocks import ISAB, MAB, PMA, SAB
from pointset.nn.encoders.dumlp import InteractionLayer, Stem
from pointset.nn.layers import Masked
from pointset.nn.norms import BatchNorm, NoNorm
from pointset.nn.pooling.dumlp import DualMLP, NormedLayers
from pointset.nn.pooling.joined import JoinedPool
from pointset.nn.pooling.pma import AttentionPool
from pointset.nn.pooling.statistics import MaxPool, MeanPool, SumPool
from pointset.nn.registry import entry_of
from pointset.nn.scores import DotScore
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.local_feature_inputs import LARGEST, LocalFeatureInputs

LARGEST_FLOAT16 = float(np.finfo(np.float16).max)

FIELDS: dict[type[nn.Module], tuple[str, ...]] = {
    nn.Linear: ("weight", "bias"),
    nn.ReLU: (),
    nn.Flatten: (),
    BatchNorm: ("weight", "bias", "running_mean", "running_var", "eps"),
    Multihead: ("query", "key", "value", "heads"),
    MAB: (
        *("multihead", "feed_forward"),
        *("norm_query", "norm_key", "norm_hidden", "norm_attended", "norm_output"),
    ),
    SAB: ("mab",),
    ISAB: ("inducing_points", "reads", "writes"),
    PMA: ("seeds", "feed_forward", "mab"),
    InteractionLayer: ("reads", "rows", "summary", "norm"),
    DualMLP: ("logits", "values"),
    AttentionPool: ("pma", "sab", "feed_forward"),
    MaxPool: (),
    MeanPool: (),
    SumPool: (),
    JoinedPool: ("pools",),
    LocalFeatureInputs: ("mean", "deviation"),
}
"""The modules with a JavaScript implementation, and the attributes that it needs: tensors, modules, lists of modules,
numbers. A subclass uses the implementation of its base class."""


def describe_model(model: nn.Module) -> dict[str, Any]:
    """Describe a classifier as plain data for JavaScript.

    Weights are rounded to 16 bits (`as_float16`), like the files of the pretrained models.

    Returns:
        `name`, `inputs`, `classes`, `normalize`, `up`, `points`, `temperature`, the modules `encoder`, `pool` and
        `head`, `weights` (all arrays in base 64), and `arrays`, the position of each array in `weights`.

    Raises:
        PointsetError: a module has no JavaScript implementation (the message names it), or a weight is not finite.
    """
    name = getattr(getattr(model, "spec", None), "name", type(model).__name__)
    if not isinstance(model, SetClassifier):
        raise PointsetError(f"{name} has no encoder and pooling for a live page to run: use a model such as isab16-pma")
    preparation = model.preparation
    if "axes" in preparation.normalize:
        raise PointsetError(
            f"{name} rotates shapes to their axes ({preparation.normalize}), which a page cannot do: omit --live"
        )
    describer = Describer(model)
    features = [] if model.numbers is None else [describer.describe(model.numbers, "numbers")]
    tree = {
        "name": name,
        "inputs": model.inputs,
        **{field: getattr(preparation, field) for field in ("normalize", "up", "points")},
        "classes": list(model.classes or []),
        "encoder": features + describer.describe_all(model.encoder, "encoder"),
        "pool": describer.describe(model.pool, "pool"),
        "temperature": model.temperature,
        "head": describer.describe(model.head, "head"),
        "arrays": describer.arrays,
    }
    return tree | {"weights": base64.b64encode(describer.content).decode()}


def as_float16(tensor: Tensor) -> NDArray[np.floating[Any]]:
    """Return the values of a tensor as float16, or as float32 if one is too large for float16."""
    numbers = tensor.detach().cpu().float().numpy()
    if not np.isfinite(numbers).all():
        raise PointsetError("the model has a weight that is not finite: its training diverged, train it again")
    return numbers.astype("<f4" if np.abs(numbers).max(initial=0) > LARGEST_FLOAT16 else "<f2")


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
        """Return the description of a submodule: the name of its JavaScript function as "kind", and its attributes."""
        outer, self.path = self.path, f"{self.path}.{name}".lstrip(".")
        if not type(module).__module__.startswith(("pointset.", "torch.")):
            raise self.unsupported(f"is the user-defined {type(module).__name__}")
        description = self._description(module)
        self.path = outer
        return description

    def describe_all(self, modules: Iterable[nn.Module], name: str = "") -> list[Any]:
        """Return the descriptions of modules called in sequence, without those that do nothing in evaluation mode."""
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
        if isinstance(module, NormedLayers):  # with ReLUs between the layers; a stem also ends with a ReLU
            pairs = zip(module.linear, module.norm, strict=True)
            layers = [layer for linear, norm in pairs for layer in (nn.ReLU(), linear, norm)][1:]
            return self._description(nn.Sequential(*layers, *[nn.ReLU()] * isinstance(module, Stem)))
        if isinstance(module, MAB) and module.form == "paper":
            raise self.unsupported('has the form "paper"')
        if isinstance(module, PMA) and module.pooled_seeds is not None:
            raise self.unsupported("has seeds that are computed from the set")
        known = next((kind for kind in type(module).__mro__ if kind in FIELDS), None)
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
        if isinstance(module, LocalFeatureInputs):
            return self._fields(module, known, constants={**CONSTANTS, "kind": module.kind, "largest": LARGEST})
        if isinstance(module, MaxPool):
            return self._fields(module, known, layer=self.path)
        return self._fields(module, known)

    def _fields(self, module: nn.Module, known: type[nn.Module], **values: Any) -> dict[str, Any]:
        """Return a description with the attributes that the JavaScript function of a known type needs."""
        for name in FIELDS[known]:
            value = getattr(module, name)
            if isinstance(value, Tensor):
                value = self.array(value)
            elif isinstance(value, nn.Module):
                value = self.describe(value, name)
            values[name] = value
        if module in self.attending:
            values["map"] = self.attending[module]
        return {"kind": known.__name__} | values

    def array(self, tensor: Tensor) -> dict[str, int]:
        """Add an array to the weights, and return a reference to it."""
        numbers = as_float16(tensor)
        bits = 8 * numbers.itemsize
        self.arrays.append({"start": len(self.content), "shape": list(numbers.shape), "bits": bits})
        self.content += numbers.tobytes()
        return {"array": len(self.arrays) - 1}

    def unsupported(self, what: str) -> PointsetError:
        """Return the error for a property of the current module that is not implemented in JavaScript."""
        return PointsetError(
            f"{self.path} {what}, which a live page cannot compute in JavaScript: use a model such as isab16-pma"
            + ", or make a page of maps" * bool(self.attending)
        )
