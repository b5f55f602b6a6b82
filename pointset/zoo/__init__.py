"""Names of models, and the classifiers that they stand for.

Imports: `data`, `nn`, `runs`, `streaming`. Imported by: `commands`, `comparison`, `evaluation`, `explain`, `export`,
`tasks`, `training`.
"""
