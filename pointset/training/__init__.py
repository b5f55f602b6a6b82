"""One explicit training loop, its objectives, its optimiser, its checkpoints, and several processes for one run.

Imports: `data`, `evaluation`, `runs`, `zoo`. Imported by: `commands`, `comparison`, `export`, `tasks`.
"""
