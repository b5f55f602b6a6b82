"""The training loop, objectives, optimizers and checkpoints, in one process or several.

Imports: `data`, `evaluation`, `runs`, `zoo`. Imported by: `commands`, `comparison`, `export`, `tasks`.
"""
