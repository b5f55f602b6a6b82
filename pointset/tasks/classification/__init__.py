"""Classification of point sets: data, sizes, robustness, and what a report shows of predictions."""
