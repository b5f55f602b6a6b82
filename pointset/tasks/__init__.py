"""The set problems of the papers that need no meshes, each an experiment with the published figures beside ours.

    pointset task max-regression

A `Task` (see task.py) draws sets, builds the models of its table, and says what is good; everything else, from the grid
of model x seed to the table, is the same for all. Tasks by name are in registry.py.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
