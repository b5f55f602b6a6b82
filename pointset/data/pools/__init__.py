"""Points of shapes, kept on disk and mapped into memory: build, open, verify.

`plan` says what to make, `shapes` makes it in any number of processes, `journal` keeps finished shapes, `partial` makes
the pool of them, `manifest` describes the whole, `store` opens or makes a pool, `build` makes all of a dataset.
"""
