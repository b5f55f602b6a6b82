"""The commands of `pointset`, by subject; nothing heavy is imported until one runs.

Imports: `comparison`, `data`, `evaluation`, `explain`, `export`, `runs`, `tasks`, `training`, `viz`,
`zoo`. Imported by: no other room.
"""
