"""Runs in folders that can be killed and resumed: atomic files, ownership, jobs, workers, provenance."""
