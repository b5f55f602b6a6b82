"""Corruptions of point clouds at five severities: seeded, on whole batches, each as it was published.

From ModelNet40-C (Sun et al., Benchmarking Robustness of 3D Point Cloud Recognition Against Common Corruptions, arXiv
2201.12296), in the figures of the authors' released code (github.com/jiachens/ModelNet40-C, `data/generate_c.py`): the
13 of its 15 that need no renderer, which leaves out occlusion and lidar. From ModelNet-C (Ren et al., Benchmarking and
Analyzing Point Cloud Classification under Corruptions, arXiv 2202.03377): the two dropouts.

The frame: clouds as the benchmarks begin from them, the mean at the origin, the farthest point at distance 1, y up.
Lengths are in that unit. What all of them do differently from the released code:

- Counts are for 1,024 points there (2,048 for density_inc) and the same proportions of any number here.
- ModelNet40-C then scales most of its clouds (not gaussian, cutout and the two densities) so that the longest edge of
  the bounding box is 2. Here nothing is scaled afterwards: a model gets the normalisation that it was trained with, see
  `pointset.evaluation.robustness`.
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
