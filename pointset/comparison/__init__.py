"""Run an experiment: train and test a grid of models, and write statistics, tables and a report.

An experiment is a TOML file: data, sizes of set, models, seeds, one recipe for all rows.

    data = "modelnet40"
    points = [100, 1000]
    seeds = [0, 1, 2]
    models = ["rff-max", "isab16-pma", { name = "isab16-pma", label = "pooled", seeds = "pooled" }]
    robustness_seeds = [0]          # also test these seeds on corrupted and on smaller sets,
    robustness_points = [100]       # at these set sizes; default: all
    metrics = ["log loss", "ECE"]   # further metrics in the table; results.csv has all of them

    [model]                         # fields of ModelOptions
    dim = 128

    [recipe]                        # fields of Recipe
    epochs = 60
    points = [64, 1024]             # training sets: a size drawn for each batch

`pointset compare FILE` runs the grid, every run in its own folder. It can be killed at any time and started again, and
ends with the same numbers. A run that fails is reported and does not stop the others. Each folder lists its files with
their digests in `SHA256SUMS`; a file that was changed is reported before it is used.

Two models are called distinguishable only if their difference is significant both over seeds (t-test, seeds as blocks)
and over test shapes (paired bootstrap), after Holm's correction for the number of pairs; the tests of this package
check by simulation that the rule keeps its level. A single seed is never enough: if its two runs differ significantly
(McNemar's test), the table says "one seed". For the definition of each number, see `statistics.py`,
`pointset.evaluation.calibration` and `pointset.evaluation.corruptions`.

A `Task` (task.py) defines what is learned, on which sets and with which metrics; the tasks are in `pointset.tasks`.

Imports: `evaluation`, `runs`, `training`, `viz`, `zoo`. Imported by: `commands`, `tasks`.
"""
