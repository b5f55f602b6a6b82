"""The training loop, objectives, optimizers and checkpoints, in one process or several."""
