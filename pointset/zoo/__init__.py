"""Models by name, and trained models.

Imports: `data`, `nn`, `runs`, `streaming`. Imported by: `commands`, `comparison`, `evaluation`, `explain`, `export`,
`tasks`, `training`.
"""
