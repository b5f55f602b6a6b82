"""Tasks for comparisons: what is learned and how it is evaluated. `pointset.comparison` runs them.

classification.py classifies shapes, given as point sets. The other tasks are set problems from papers, without shapes;
set_problem.py has their shared code. Tables of max-regression and clustering include the published results:

    pointset compare max-regression
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
