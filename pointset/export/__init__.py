"""Export of trained models to torch.export programs, to ONNX, and to a page that runs them in a browser."""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
