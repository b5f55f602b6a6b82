"""The commands of `pointset`, one module per subject; heavy imports happen only when a command runs."""
