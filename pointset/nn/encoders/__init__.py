"""Encoders, which map points to rows (feature vectors). Each encoder is registered in a separate file.

All files in this folder are imported automatically, so a new encoder needs only a new file.
"""

import importlib
import pkgutil

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
