"""Read meshes and point clouds, with one reader per file format."""
