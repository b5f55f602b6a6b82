"""The training loop, objectives, optimizers and checkpoints, for one or several processes."""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
