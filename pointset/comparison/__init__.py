"""One engine for every comparison: an experiment becomes runs, and these become statistics, tables and a report.

An experiment is a TOML file: data, sizes of set, models, seeds, one recipe for all rows.

    data = "modelnet40"
    points = [100, 1000]
    seeds = [0, 1, 2]
    models = ["rff-max", "isab16-pma", { name = "isab16-pma", label = "pooled", seeds = "pooled" }]
    robustness_seeds = [0]          # test these on corrupted and on smaller sets too,
    robustness_points = [100]       # at these of the sizes; at all when not given
    metrics = ["log loss", "ECE"]   # beside the accuracy in the table; results.csv has them all

    [model]                         # fields of ModelOptions
    dim = 128

    [recipe]                        # fields of Recipe
    epochs = 60
    points = [64, 1024]             # training sets: a size drawn for each batch

`pointset compare FILE` runs the grid, every run in a folder of its own; killed at any moment and started again it ends
with the same numbers; a run that fails is named and stops nothing. Its files are listed with their digests in a
`SHA256SUMS` of each folder, and one that has changed is named before anything is taken from it.

Two models are called distinguishable only when the difference outlasts both other seeds (t-test, seeds being blocks)
and other test shapes (paired bootstrap), after Holm's correction for the number of pairs: the tests simulate that this
holds its level. One seed is never enough: its runs may differ (McNemar's test), and the table says "one seed". See
`statistics.py`, `pointset.evaluation.calibration` and `pointset.evaluation.corruptions` for how each number is made.

A `Task` (task.py) decides what is learned, on which sets and by which metrics; the tasks are in `pointset.tasks`.

Imports: `evaluation`, `runs`, `training`, `viz`, `zoo`. Imported by: `commands`, `tasks`.
"""
