"""One engine for every comparison: an experiment becomes runs, and these become statistics, tables and a report.

A `Task` (task.py) decides what is learned, on which sets and by which metrics; the tasks are in `pointset.tasks`.

Imports: `evaluation`, `runs`, `training`, `viz`, `zoo`. Imported by: `commands`, `tasks`.
"""
