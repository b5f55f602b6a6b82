"""shapes10, the embedded dataset: ten classes of furniture and household objects, built from parametric solids.

Every instance has its own proportions, parts and small defects, which depend only on (seed, kind, split, number). The
files are plain OFF in ModelNet's layout, `class/split/class_0001.off`, and are read like ModelNet's.
"""

from pointset.data.shapes10.build import KINDS, build_shapes10, is_current, make_shape

__all__ = ["KINDS", "build_shapes10", "is_current", "make_shape"]
