"""Work in folders that survives a kill: atomic files, ownership, jobs, workers, provenance.

Imports: no other room. Imported by: `commands`, `comparison`, `data`, `evaluation`, `explain`, `export`, `tasks`,
`training`, `viz`, `zoo`.
"""
