"""Data quality of a dataset: unreadable files, duplicates, leakage and possible label errors."""
