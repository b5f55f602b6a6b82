"""From mesh files and folders to batches of point sets.

The names below are loaded when they are first used, so that importing the package stays light. The
function `batches` stays in the module of its name, which it would hide.
"""

from typing import TYPE_CHECKING

from pointset.lazy import lazy_names

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
    from pointset.data.buckets import BucketSampler, bucketed_batches
    from pointset.data.catalogue.cards import Card, list_cards, load_card
    from pointset.data.dataset import load_dataset
    from pointset.data.files.clouds import Cloud, CloudError, read_cloud
    from pointset.data.files.meshes import Mesh, MeshError, read_mesh
    from pointset.data.files.scans import Scan, open_scan
    from pointset.data.geometric import GeometricSets, from_geometric
    from pointset.data.normalize import normalize_points
    from pointset.data.normalize_pieces import normalize_chunks
    from pointset.data.point_sets import PointSets
    from pointset.data.pools.pool import Pool
    from pointset.data.sampling import downsample, sample_points

_HOMES = {
    "augment": (
        "Compose",
        "Jitter",
        "RandomSubset",
        "RotateAny",
        "RotateUp",
        "Scale",
        "Shift",
        "augmentation_from_names",
    ),
    "batches": (
        "Batch",
        "collate",
        "fixed_batches",
        "pad_sets",
    ),
    "buckets": (
        "BucketSampler",
        "bucketed_batches",
    ),
    "catalogue.cards": (
        "Card",
        "list_cards",
        "load_card",
    ),
    "files.clouds": (
        "Cloud",
        "CloudError",
        "read_cloud",
    ),
    "dataset": ("load_dataset",),
    "geometric": (
        "GeometricSets",
        "from_geometric",
    ),
    "files.meshes": (
        "Mesh",
        "MeshError",
        "read_mesh",
    ),
    "normalize": ("normalize_points",),
    "normalize_pieces": ("normalize_chunks",),
    "point_sets": ("PointSets",),
    "pools.pool": ("Pool",),
    "sampling": ("downsample", "sample_points"),
    "files.scans": ("Scan", "open_scan"),
}

__all__ = [
    "Batch",
    "BucketSampler",
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
    "Scan",
    "Shift",
    "augmentation_from_names",
    "bucketed_batches",
    "collate",
    "downsample",
    "fixed_batches",
    "from_geometric",
    "list_cards",
    "load_card",
    "load_dataset",
    "normalize_chunks",
    "normalize_points",
    "open_scan",
    "pad_sets",
    "read_cloud",
    "read_mesh",
    "sample_points",
]

__getattr__, __dir__ = lazy_names(__name__, _HOMES)
