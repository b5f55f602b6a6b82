"""Names of models that together contain every part of the zoo."""

from pointset.nn import registry
from pointset.zoo.names import list_models


def covering_models() -> list[str]:
    """Every encoder before `max`, `mean` and `pma`, every pooling behind `rff` and `isab16`, and the whole models."""
    listed = list_models()
    encoders, poolings = ([part.listed for part in registry.entries(kind)] for kind in ("encoder", "pooling"))
    wanted = {f"{encoder}-{pooling}" for encoder in encoders for pooling in ("max", "mean", "pma")}
    wanted |= {f"{encoder}-{pooling}" for encoder in ("rff", "isab16") for pooling in poolings}
    return [name for name in listed if name in wanted or "-" not in name]
