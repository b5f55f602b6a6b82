"""Export trained models: as torch.export programs, as ONNX, and as a page that runs them in a browser."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
