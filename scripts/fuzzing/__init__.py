"""Mutated files of every kind, read by the toolkit and by oracles that share no code with it; see ../fuzz.py."""
