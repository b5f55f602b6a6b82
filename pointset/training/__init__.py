"""One explicit training loop, its objectives, its optimiser, its checkpoints, and several processes for one run.

Imports: `evaluation`, `zoo`, `data`, `nn`, `runs`. Imported by `comparison`, `tasks`, `export` and `commands`.
"""
