"""Points sampled once and kept on disk: build, open, verify."""
