"""Generate shapes10, a dataset of ten classes of furniture and household objects, built from parametric solids.

Proportions, parts and small defects of a shape depend only on (seed, kind, split, number). The files are OFF files in
ModelNet's layout, `class/split/class_0001.off`, and are read like those of ModelNet.
"""

from pointset.data.shapes10.build import KINDS, build_shapes10, is_current, make_shape

__all__ = ["KINDS", "build_shapes10", "is_current", "make_shape"]
