"""Build, open and inspect pools: sampled points of shapes, kept on disk and memory-mapped.

`plan` describes a pool before and after it is built, `shapes` samples it in any number of processes, `store` opens or
builds pools, and `inspection` verifies them.
"""
