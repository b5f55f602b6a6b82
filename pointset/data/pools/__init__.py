"""Build, open and verify pools: sampled points of shapes, kept on disk and memory-mapped.

`plan` describes a pool, `shapes` samples it in any number of processes, `manifest` describes a finished pool, `store`
opens or makes a pool, and `build` makes all pools of a dataset.
"""
