"""Build, open and inspect caches: sampled points of shapes, kept on disk and memory-mapped."""
