"""Which shapes are one shape, or views of one object: by their names, and by how they look."""
