"""Data quality of a dataset: unreadable files, duplicates, leakage and possible label errors."""

from pointset.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
