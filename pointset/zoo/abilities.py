"""Abilities of the zoo's models: which have attention maps and which can be exported."""

from typing import Any

from torch import nn

from pointset.configuration import name_of
from pointset.errors import PointsetError
from pointset.nn.registry import entries, entry_of
from pointset.nn.weights import Weights
from pointset.zoo.models import create_model
from pointset.zoo.names import list_models
from pointset.zoo.options import ModelOptions


def describe_models(options: ModelOptions | None = None) -> list[dict[str, Any]]:
    """Return the name, the number of parameters and the `abilities` of every model in `list_models`."""
    rows = []
    for name in list_models():
        model = create_model(name, options=options)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        rows.append({"model": name, "parameters": parameters, **abilities(model)})
    return rows


def abilities(model: nn.Module) -> dict[str, bool]:
    """Return whether a model has attention maps, and whether it can be exported."""
    maps = any(getattr(type(module), "maps", None) for module in model.modules())
    try:
        check_export(model)
    except PointsetError:
        return {"maps": maps, "exports": False}
    return {"maps": maps, "exports": True}


def check_export(model: nn.Module) -> None:
    """Raise a PointsetError if a part of a model cannot be exported; the message names the first such part."""
    known = [entry.name for entry in entries("weights") if entry.export]
    used = (name for module in model.modules() if isinstance(module, Weights) for name in module.functions)
    lacking = [f"weights function {name_of(name)!r}" for name in used if name not in known]
    for entry in map(entry_of, model.modules()):
        lacking += [f"{entry.kind} {entry.name!r}"] if entry and not entry.module.export else []
    if lacking:
        raise PointsetError(
            f"{lacking[0]} cannot be exported: set export = True in its class, or for register_weights, if it "
            "consists of tensor operations that do not depend on sizes, and takes a mask"
        )
