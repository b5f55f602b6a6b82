"""Tasks: what is learned and how it is evaluated, for the engine in `pointset.comparison`.

classification.py classifies point sets of shapes. The other tasks are set problems from the papers that need no meshes
(set_problem.py has their shared code). For max-regression and clustering, tables include the published results:

    pointset compare max-regression
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
