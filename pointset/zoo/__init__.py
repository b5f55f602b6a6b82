"""Models by name, and trained models."""
