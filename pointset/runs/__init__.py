"""Runs in folders that can be killed and resumed: atomic files, ownership, jobs, workers, provenance.

Imports: no other subpackage. Imported by: `commands`, `comparison`, `data`, `evaluation`, `explain`, `export`, `tasks`,
`training`, `viz`, `zoo`.
"""
