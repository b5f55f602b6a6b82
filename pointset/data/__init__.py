"""Read meshes and point clouds, sample them into point sets, and batch the sets.

The names in `__init__.pyi` are imported on first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
