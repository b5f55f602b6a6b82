"""Read DAE (Khronos, "COLLADA 1.4.1") by pycollada; trimesh (5.2) leaves out parts that a controller moves."""

import io
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pointset.data.readers.meshes import Mesh, mesh_of_polygons
from pointset.errors import PointsetError, counted, one_line


def parse_dae(content: bytes, name: str) -> Mesh:
    """Return the mesh of all polygons in the scene of a DAE file, with the upward axis that the file states.

    A part that a skin moves stands as it was bound to it. Lines and parts that cannot be read are left out, with a
    warning.
    """
    import collada  # an extra

    content = re.sub(rb"(?<=\d),(?=\d)", b".", content)  # 3ds Max wrote decimal commas in some languages
    document = collada.Collada(io.BytesIO(content), ignore=[collada.common.DaeError])
    vertices, corners, sizes = list[np.ndarray](), list[np.ndarray](), list[np.ndarray]()
    first = lines = 0
    with warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning):  # of numpy's matrices
        primitives = [*_primitives(document.scene)]
    for primitive in primitives:
        if isinstance(primitive, collada.lineset.BoundLineSet):
            lines += len(primitive)
        elif primitive.vertex is not None:
            vertices.append(np.asarray(primitive.vertex, np.float64))
            corners.append(np.asarray(primitive.vertex_index, np.int64).ravel() + first)
            count = len(primitive)
            sizes.append(np.diff(primitive.polyindex)[:, 0] if hasattr(primitive, "polyindex") else np.full(count, 3))
            first += len(primitive.vertex)
    if document.errors:
        reason = one_line(document.errors[0], 100)
        warnings.warn(f"{name}: {counted(len(document.errors), 'part')} cannot be read: {reason}", stacklevel=2)
    if lines:
        warnings.warn(f"{name}: {lines:,} lines beside its polygons are left out", stacklevel=2)
    if not sizes:
        raise PointsetError("expected a mesh, found no triangles")
    mesh = mesh_of_polygons(np.concatenate(vertices), np.concatenate(corners), np.concatenate(sizes), name)
    return replace(mesh, up=document.assetInfo.upaxis[0].lower())


def _primitives(scene: Any) -> Iterator[Any]:
    """Return the polygons and lines of a scene, moved to their places."""
    for part in scene.objects("geometry"):
        yield from part.primitives()
    for controller in scene.objects("controller"):
        if hasattr(controller, "skin"):
            yield from controller.geometry.primitives()
        else:  # the shape before it is morphed
            yield from controller.original.source_geometry.bind(controller.matrix, {}).primitives()
