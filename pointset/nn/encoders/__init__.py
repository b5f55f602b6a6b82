"""From points to rows that know their set, one file for each kind of encoder, registered there.

Every file in this folder is imported with it, so that a new encoder needs no other place.
"""

import importlib
import pkgutil

for _file in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_file.name}")
