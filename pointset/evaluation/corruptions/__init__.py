"""Corruptions of point clouds at five severities: seeded, on whole batches, each as it was published.

From ModelNet40-C (Sun et al., Benchmarking Robustness of 3D Point Cloud Recognition Against Common Corruptions, arXiv
2201.12296), with the numbers of the authors' released code (github.com/jiachens/ModelNet40-C, `data/generate_c.py`):
13 of its 15, without occlusion and lidar, which need a renderer. From ModelNet-C (Ren et al., Benchmarking and
Analyzing Point Cloud Classification under Corruptions, arXiv 2202.03377): the two dropouts.

Clouds are in the benchmarks' frame: mean at the origin, farthest point at distance 1, y up. Lengths are in that unit.
Differences from the released code:

- Its counts are for 1,024 points (2,048 for density_inc); here they are the same proportions of any number of points.
- ModelNet40-C then scales most clouds (not gaussian, cutout and the two densities) to a bounding box of longest edge 2.
  Here a model gets the normalisation that it was trained with instead, see `pointset.evaluation.robustness`.
"""

from pointset.evaluation.corruptions import density, noise, transformations  # noqa: F401, they fill the registry
from pointset.evaluation.corruptions.registry import (
    CORRUPTIONS,
    MODELNET40_C,
    SEVERITIES,
    Corruption,
    corrupt,
    find_corruption,
    list_corruptions,
)

__all__ = [
    "CORRUPTIONS",
    "MODELNET40_C",
    "SEVERITIES",
    "Corruption",
    "corrupt",
    "find_corruption",
    "list_corruptions",
]
