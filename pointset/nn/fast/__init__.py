"""Faster ways to the same results: packed sets, absorbed projections, and tiles that fit the processor's cache."""
