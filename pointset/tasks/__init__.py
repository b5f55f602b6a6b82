"""Tasks: what is learned and how it is judged, for the engine in `pointset.comparison`.

classification/ is about point sets of shapes. The other tasks are the set problems of the papers that need no meshes
(set_problem.py has what they share, rows.py their models), the first two with published results beside ours:

    pointset task max-regression

Imports: `comparison`, `data`, `evaluation`, `explain`, `export`, `nn`, `runs`, `training`, `viz`,
`zoo`. Imported by: `commands`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
