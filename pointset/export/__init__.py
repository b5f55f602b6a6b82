"""Trained models as files that other programs read: torch.export and ONNX.

Imports: `nn`, `runs`, `training`, `zoo`. Imported by: `commands`.
"""
