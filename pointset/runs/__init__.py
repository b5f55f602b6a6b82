"""Files and processes of runs that can be killed and resumed: atomic writes, records, progress, workers, provenance."""
