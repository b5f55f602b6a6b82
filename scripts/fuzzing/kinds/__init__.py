"""The kinds of input: good files, how they are mutated, who reads them, and how two readings are compared."""

from fuzzing.kinds.base import Kind
from fuzzing.kinds.meshes import OBJ, OFF

KINDS: dict[str, Kind] = {kind.name: kind for kind in (OFF, OBJ)}
"""By the name that the command line takes."""
