"""Encoders: from points to rows of features. Each kind of encoder is registered in its own file.

All files in this folder are imported automatically, so a new encoder needs only its file.
"""

import importlib
import pkgutil

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
