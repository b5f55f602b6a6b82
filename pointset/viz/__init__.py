"""Pictures of clouds and of attention: figures, pages and 3D files from maps and points; it never runs a model.

In every picture of attention, 1 is uniform attention, on a logarithmic scale.
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
