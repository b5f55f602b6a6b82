"""Pictures of clouds and of attention: figures, interactive pages, and files for 3D tools.

Scales of attention are logarithmic, and 1 is uniform attention.
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
