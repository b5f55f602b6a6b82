"""Files and processes of runs that can be resumed: atomic writes, records, progress, workers, provenance."""
