"""Run an experiment: train and test a grid of models, and write statistics, tables and a report.

`pointset compare FILE` runs the grid. Each run has its own folder, and an interrupted comparison resumes with the same
results. A run that fails is reported and does not stop the other runs.

`statistics.py` defines the significance test of two models, for new seeds and new test sets together. The significance
level holds for all pairs of models in a table. Models with a single seed are not tested, and the table shows "one seed"
instead. `pointset.evaluation.calibration` and `pointset.evaluation.corruptions` define the metrics.

A `Task` (task.py) defines what is learned, on which sets and with which metrics. The tasks are in `pointset.tasks`.
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
