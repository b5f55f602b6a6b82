"""Building blocks of set networks: torch modules that are called with rows X [B, n, d] and a mask [B, n].

The mask is True at real rows and False at padding. None means that all rows are real. Blocks, encoders, poolings,
scores, weights functions and norms are exported under their names.
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
