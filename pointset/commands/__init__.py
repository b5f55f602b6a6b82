"""The commands of `pointset`, one module per subject; heavy imports happen only when a command runs.

Imports: `comparison`, `data`, `evaluation`, `explain`, `export`, `runs`, `tasks`, `training`, `viz`,
`zoo`. Imported by: no other subpackage.
"""
