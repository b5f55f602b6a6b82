"""From a set of rows to k rows, one file for each kind of pooling."""
