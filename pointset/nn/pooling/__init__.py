"""From a set of rows to k rows, one file for each kind of pooling, registered there.

Every file in this folder is imported with it, so that a new pooling needs no other place.
"""

import importlib
import pkgutil

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
