"""Classification of point sets: the task, saved predictions, robustness, and sections of the report."""
