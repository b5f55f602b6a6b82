"""From mesh files and folders to batches of point sets.

The names below are loaded when they are first used, so that importing the package stays light. The
function `batches` stays in the module of its name, which it would hide.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointset.data.augment import (
        Compose,
        Jitter,
        RandomSubset,
        RotateAny,
        RotateUp,
        Scale,
        Shift,
        augmentation_from_names,
    )
    from pointset.data.batches import Batch, collate, fixed_batches, pad_sets
    from pointset.data.cards import Card, list_cards, load_card
    from pointset.data.clouds import Cloud, CloudError, read_cloud
    from pointset.data.dataset import load_dataset
    from pointset.data.geometric import GeometricSets, from_geometric
    from pointset.data.meshes import Mesh, MeshError, read_mesh
    from pointset.data.normalize import normalize_points
    from pointset.data.point_sets import PointSets
    from pointset.data.pools import Pool
    from pointset.data.sampling import sample_points

_MODULES = {
    "Batch": "batches",
    "Card": "cards",
    "Cloud": "clouds",
    "CloudError": "clouds",
    "Compose": "augment",
    "GeometricSets": "geometric",
    "Jitter": "augment",
    "Mesh": "meshes",
    "MeshError": "meshes",
    "PointSets": "point_sets",
    "Pool": "pools",
    "RandomSubset": "augment",
    "RotateAny": "augment",
    "RotateUp": "augment",
    "Scale": "augment",
    "Shift": "augment",
    "augmentation_from_names": "augment",
    "collate": "batches",
    "fixed_batches": "batches",
    "from_geometric": "geometric",
    "list_cards": "cards",
    "load_card": "cards",
    "load_dataset": "dataset",
    "normalize_points": "normalize",
    "pad_sets": "batches",
    "read_cloud": "clouds",
    "read_mesh": "meshes",
    "sample_points": "sampling",
}

__all__ = [
    "Batch",
    "Card",
    "Cloud",
    "CloudError",
    "Compose",
    "GeometricSets",
    "Jitter",
    "Mesh",
    "MeshError",
    "PointSets",
    "Pool",
    "RandomSubset",
    "RotateAny",
    "RotateUp",
    "Scale",
    "Shift",
    "augmentation_from_names",
    "collate",
    "fixed_batches",
    "from_geometric",
    "list_cards",
    "load_card",
    "load_dataset",
    "normalize_points",
    "pad_sets",
    "read_cloud",
    "read_mesh",
    "sample_points",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
