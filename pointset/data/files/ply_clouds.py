"""Point clouds in PLY files: the element called vertex, with its properties x, y and z."""

from pathlib import Path

from pointset.data.files.clouds import CloudError
from pointset.data.files.file_kinds import has_faces
from pointset.data.files.layouts import AXES, Binary, Text, record_of
from pointset.data.files.ply_header import read_ply_header


def ply_layout(path: Path) -> Binary | Text:
    """The layout of the vertices in a PLY file without faces."""
    if has_faces(path):
        raise CloudError("is a mesh, among point clouds: keep meshes and clouds in two folders, or sample points on it")
    header = read_ply_header(path)
    order, names = header.order, [element.name for element in header.elements]
    if "vertex" not in names:
        raise CloudError(f"expected an element called vertex, found {', '.join(names) or 'none'}")
    place = names.index("vertex")
    vertex, before = header.elements[place], header.elements[:place]
    if not {*AXES} <= {*vertex.names}:
        raise CloudError(f"expected x, y and z of every point, found {', '.join(vertex.names) or 'nothing'}")
    for element in (vertex, *before) if order else (vertex,):
        if element.has_lists:
            raise CloudError(f"has lists in its element {element.name}, so that points have no fixed place: drop them")
    if not order:
        above = sum(element.count for element in before)
        more = len(header.elements) > place + 1
        return Text((tuple(vertex.names),), vertex.count, header.offset, header.lines + 1, skipped=above, more=more)
    skipped = sum(element.count * kind.itemsize for element in before for kind in element.types(order))
    return Binary(vertex.count, header.offset + skipped, record_of(vertex.names, vertex.types(order)))
