"""Tasks for comparisons: what is learned and how it is evaluated. `pointset.comparison` runs them.

`classification.py` classifies shapes by their points. The other tasks are set problems from papers, without shapes, and
share `set_problem.py`. The tables of max-regression and clustering include the published results:

    pointset compare max-regression
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
