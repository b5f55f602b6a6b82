"""Read meshes and point clouds, sample them into point sets, and batch the sets.

The names in `__init__.pyi` are imported on first use.
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
