"""Build, open and verify point caches: points of shapes in memory-mapped files on disk."""
