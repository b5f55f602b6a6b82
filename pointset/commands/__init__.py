"""The commands of `pointset`, one module per subject. Slow imports happen only when a command runs."""
