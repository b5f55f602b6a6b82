"""Run an experiment: train and test a grid of models, and write statistics, tables and a report.

`pointset compare FILE` runs the grid, every run in its own folder. It can be killed at any time and started again, and
ends with the same numbers. A run that fails is reported and does not stop the others.

Two models are called distinguishable only if their difference is significant both over seeds (t-test, seeds as blocks)
and over test shapes (paired bootstrap), after Holm's correction for the number of pairs; the tests of this package
check by simulation that the rule keeps its level. A single seed is never enough: if its two runs differ significantly
(McNemar's test), the table says "one seed". For the definition of each number, see `statistics.py`,
`pointset.evaluation.calibration` and `pointset.evaluation.corruptions`.

A `Task` (task.py) defines what is learned, on which sets and with which metrics; the tasks are in `pointset.tasks`.
"""
