"""One engine for every comparison: an experiment becomes runs, and these become statistics, tables and a report.

What is learned, on which sets and by which metrics, is said by a `Task` (task.py); they are in `pointset.tasks`.

Imports: `evaluation`, `runs`, `training`, `viz`, `zoo`. Imported by: `commands`, `tasks`.
"""
