"""Building blocks of set networks as torch modules: rows [B, n, d] and a mask [B, n] in, rows out.

A mask is True at real rows, None if all rows are real. Encoders and poolings are exported under their class names, with
the layers, scores, weights functions and norms that they consist of.
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
