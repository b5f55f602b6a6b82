"""Run an experiment: train and test a grid of models, and write statistics, tables and a report.

`pointset compare FILE` runs the grid, every run in its own folder. An interrupted comparison resumes and gives the same
results. A run that fails is reported and does not stop the others.

The difference of two models is significant only if it holds for new seeds and new test sets together, at a level that
holds for all pairs of the table; for the rule, and the simulation by which it was chosen, see `statistics.py`. A single
seed is never enough: if its two runs differ significantly (McNemar's test), the table says "one seed". For the
definition of each number, see `pointset.evaluation.calibration` and `pointset.evaluation.corruptions`.

A `Task` (task.py) defines what is learned, on which sets and with which metrics; the tasks are in `pointset.tasks`.
"""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
