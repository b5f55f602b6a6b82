"""One strict, slow, straight-line reader per format: the rules that the toolkit's readers are held against.

Each takes the bytes of a file and returns arrays, or raises `Illegal`. They are written from the formats'
specifications and import nothing from the package.
"""
