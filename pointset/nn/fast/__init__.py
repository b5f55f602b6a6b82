"""Faster computations of the same results: absorbed projections, and tiles that fit the processor's cache."""
