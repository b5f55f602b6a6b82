"""Models, sizes and seeds under one protocol: from an experiment to runs, statistics, tables and a report.

Imports: `training`, `evaluation`, `zoo`, `viz` and what lies below them. Imported by `tasks` and `commands`.
"""
