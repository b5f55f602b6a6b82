"""shapes10: ten kinds of furniture and household objects, built from parametric solids. The embedded dataset.

Every instance has its own proportions, parts and small defects, and depends on (seed, kind, split, number) alone. The
files are plain OFF in ModelNet's layout, `class/split/class_0001.off`, and are read back like ModelNet's.
"""

from pointset.data.shapes10.build import KINDS, build_shapes10, is_current, make_shape

__all__ = ["KINDS", "build_shapes10", "is_current", "make_shape"]
