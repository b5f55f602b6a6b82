"""Trained models as files that other programs read: torch.export and ONNX.

Imports: `zoo`, `nn`, `training`, `evaluation`, `runs`. Imported by `commands`.
"""
