"""Work in folders that survives a kill: atomic files, ownership, jobs, workers, provenance.

Imports: `errors`. Imported by every room that writes or reads a folder.
"""
