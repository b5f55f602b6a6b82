"""Build, open and verify point caches: sampled points of shapes on disk, memory-mapped."""
