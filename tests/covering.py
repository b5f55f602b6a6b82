"""Names of models that together contain every part of the zoo, and the size of what a model computes."""

from typing import Any

from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pointset.nn import registry
from pointset.zoo.names import list_models


def covering_models() -> list[str]:
    """Every encoder before `max`, `mean` and `pma`, every pooling behind `rff` and `isab16`, and the whole models."""
    listed = list_models()
    encoders, poolings = ([part.listed for part in registry.entries(kind)] for kind in ("encoder", "pooling"))
    wanted = {f"{encoder}-{pooling}" for encoder in encoders for pooling in ("max", "mean", "pma")}
    wanted |= {f"{encoder}-{pooling}" for encoder in ("rff", "isab16") for pooling in poolings}
    return [name for name in listed if name in wanted or "-" not in name]


class Largest(TorchDispatchMode):
    """Records the size of the largest result of any operator."""

    numbers = 0

    def __torch_dispatch__(self, function: Any, types: Any, arguments: Any = (), options: Any = None) -> Any:
        result = function(*arguments, **(options or {}))
        for one in result if isinstance(result, tuple | list) else [result]:
            if isinstance(one, Tensor):
                self.numbers = max(self.numbers, one.numel())
        return result
