"""From mesh files and folders to batches of point sets.

The names in `__init__.pyi` are loaded when they are first used. The function `batches` stays in the module of its name,
which it would hide.

Imports: `runs`. Imported by: `commands`, `evaluation`, `explain`, `export`, `streaming`, `tasks`, `training`, `viz`,
`zoo`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
