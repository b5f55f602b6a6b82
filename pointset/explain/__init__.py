"""Explanations of a model on a cloud, as data: attention maps, rollout, occlusion, critical points, specialisation."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
