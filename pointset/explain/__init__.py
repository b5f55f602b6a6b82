"""Explanations of a model's prediction as data: attention maps, rollout, occlusion, critical points, specialisation."""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
