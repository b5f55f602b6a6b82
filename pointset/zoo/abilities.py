"""What models can do: attention maps, export."""

from collections.abc import Callable
from typing import Any

from torch import nn

from pointset.errors import PointsetError
from pointset.nn.registry import entry_of
from pointset.nn.weights import Weights
from pointset.zoo.models import create_model
from pointset.zoo.names import list_models
from pointset.zoo.options import ModelOptions


def describe_models(options: ModelOptions | None = None) -> list[dict[str, Any]]:
    """Name, number of parameters and `abilities` of every model in `list_models`."""
    rows = []
    for name in list_models():
        model = create_model(name, options=options)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        rows.append({"model": name, "parameters": parameters, **abilities(model)})
    return rows


def abilities(model: nn.Module) -> dict[str, bool]:
    """Whether a model has attention maps, and can be exported."""
    maps = any(getattr(type(module), "maps", None) for module in model.modules())
    return {"maps": maps, "exports": _passes(check_export, model)}


def _passes(check: Callable[[nn.Module], None], model: nn.Module) -> bool:
    try:
        check(model)
    except PointsetError:
        return False
    return True


def check_export(model: nn.Module) -> None:
    """Raise a PointsetError that names the first part of a model that cannot be exported, if any."""
    weights = (name for module in model.modules() if isinstance(module, Weights) for name in module.unexportable())
    lacking = [f"weights function {name!r}" for name in weights]
    for entry in map(entry_of, model.modules()):
        lacking += [f"{entry.kind} {entry.name!r}"] if entry and not entry.make.export else []
    if lacking:
        raise PointsetError(
            f"{lacking[0]} cannot be exported: say export = True in its class, or to register_weights, if it is "
            "made of tensor operations that do not depend on sizes, and takes a mask"
        )
