"""One reader for each kind of file: meshes, point clouds, scans."""
