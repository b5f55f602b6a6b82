"""Read DAE (Khronos, "COLLADA 1.4.1") by pycollada; trimesh (5.2) leaves out parts that a controller moves."""

import io
import re
import warnings
from dataclasses import replace

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
    with warnings.catch_warnings(action="ignore", category=PendingDeprecationWarning):  # of numpy's matrices
        parts = [*document.scene.objects("geometry")]
        for controller in document.scene.objects("controller"):  # a morph has a shape before it is applied
            is_skin = hasattr(controller, "skin")
            source = None if is_skin else controller.original.source_geometry
            parts.append(source.bind(controller.matrix, {}) if source else controller.geometry)
        primitives = [primitive for part in parts for primitive in part.primitives()]
    is_line = [isinstance(primitive, collada.lineset.BoundLineSet) for primitive in primitives]
    lines = sum(len(primitive) for primitive, line in zip(primitives, is_line, strict=True) if line)
    faces = [part for part, line in zip(primitives, is_line, strict=True) if not line and part.vertex is not None]
    if document.errors:
        reason = one_line(document.errors[0], 100)
        warnings.warn(f"{name}: {counted(len(document.errors), 'part')} cannot be read: {reason}", stacklevel=2)
    if lines:
        warnings.warn(f"{name}: {lines:,} lines beside its polygons are left out", stacklevel=2)
    if not faces:
        raise PointsetError("expected a mesh, found no triangles")
    firsts = np.cumsum([0, *(len(part.vertex) for part in faces)])
    corners = [np.asarray(part.vertex_index).ravel() + first for part, first in zip(faces, firsts[:-1], strict=True)]
    sizes = [np.diff(part.polyindex)[:, 0] if hasattr(part, "polyindex") else np.full(len(part), 3) for part in faces]
    vertices = np.concatenate([part.vertex for part in faces])
    mesh = mesh_of_polygons(vertices, np.concatenate(corners), np.concatenate(sizes), name)
    return replace(mesh, up=document.assetInfo.upaxis[0].lower())
