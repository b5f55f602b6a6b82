"""The kinds of input: good files, how they are mutated, who reads them, and how two readings are compared."""

from fuzzing.kinds.base import Kind
from fuzzing.kinds.clouds import CLOUDS
from fuzzing.kinds.folders import FOLDERS
from fuzzing.kinds.glb import GLB
from fuzzing.kinds.hdf5 import HDF5
from fuzzing.kinds.meshes import MESHES

KINDS: dict[str, Kind] = {kind.name: kind for kind in (*MESHES, GLB, *CLOUDS, HDF5, FOLDERS)}
"""By the name that the command line takes."""
