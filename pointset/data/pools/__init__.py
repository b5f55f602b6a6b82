"""Build, open and inspect pools: sampled points of shapes, kept on disk and memory-mapped."""
