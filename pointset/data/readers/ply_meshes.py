"""Read meshes in PLY files: the element "vertex" with x, y and z, and the element "face" with a list of corners.

The list is called vertex_indices or vertex_index. Polygons are triangulated (`pointset.data.readers.polygons`). Other
properties and elements, in any order, are skipped but checked: every number must fit its type, and the file must end
where its header says.
"""

from io import BytesIO
from pathlib import Path

import numpy as np

from pointset.data.readers.layouts import AXES
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.data.readers.number_table import LETTERS, Form
from pointset.data.readers.ply_header import PlyElement, PlyHeader, read_ply_header
from pointset.data.readers.ply_lists import Lists, parse_lists, unpack_lists
from pointset.data.readers.polygons import cut_polygons
from pointset.data.readers.text_lines import Lines
from pointset.data.readers.typed_text import number_entries, pass_over, require_end, take_entries
from pointset.errors import PointsetError, quoted

_CORNERS = ("vertex_indices", "vertex_index")
_LINES = 1 << 13  # read at a time


def parse_ply(content: bytes, path: Path) -> Mesh:
    """Parse the mesh in a PLY file, with vertices and faces in the file's order.

    Args:
        content: all bytes of the file.
        path: path of the file.

    Raises:
        MeshError: the file is not PLY, is damaged, or holds no faces; the message begins with the path and the line or
            byte.
    """
    try:
        header = read_ply_header(path)
        vertex, face = _element(header, "vertex"), _element(header, "face")
        if vertex.has_lists:
            raise PointsetError("has lists in its element 'vertex', which are not supported: remove them")
        if not {*AXES} <= {*vertex.names}:
            raise PointsetError(f"expected x, y and z of every vertex, found {quoted(', '.join(vertex.names))}")
        kept = _corners_of(face)
        read = _read_binary if header.order else _read_text
        vertices, pieces = read(content, header, kept)
        sizes = np.concatenate([piece.sizes for piece in pieces])
        corners = np.concatenate([piece.values for piece in pieces]).astype(np.int64)
    except PointsetError as error:
        message = str(error)
        raise MeshError(f"{path}{',' if message.startswith(('line ', 'byte ')) else ':'} {message}") from error
    return Mesh(vertices, cut_polygons(vertices, corners, sizes))


def _element(header: PlyHeader, name: str) -> PlyElement:
    found = next((element for element in header.elements if element.name == name), None)
    if name == "face" and any(element.name == "tristrips" and element.count for element in header.elements):
        raise PointsetError("expected a mesh of faces, found strips of triangles: save it with faces")
    if found is None or not found.count:
        has = ", ".join(f"{element.count} of {element.name}" for element in header.elements)
        what = "vertices" if name == "vertex" else "triangles (a point cloud alone has none)"
        raise PointsetError(f"expected a mesh, found no {what}: its header announces {quoted(has or 'nothing')}")
    return found


def _corners_of(face: PlyElement) -> int:
    """Index of the list of corners among the properties."""
    lists = [place for place, one in enumerate(face.properties) if one.name in _CORNERS]
    if len(lists) != 1 or not face.properties[lists[0]].length_type or face.properties[lists[0]].type[0] == "f":
        raise PointsetError(
            f"expected one list of whole numbers called vertex_indices or vertex_index in its element 'face', "
            f"found {quoted(', '.join(face.names))}"
        )
    return lists[0]


def _read_text(content: bytes, header: PlyHeader, kept: int) -> tuple[np.ndarray, list[Lists]]:
    file = BytesIO(content)
    file.seek(header.offset)
    lines = Lines(file, header.next_line)
    count = _element(header, "vertex").count
    vertices: list[np.ndarray] = []
    faces: list[Lists] = []

    def parse(some: list[str], first: int) -> tuple[int, Lists]:
        lists = parse_lists(some, first, element.properties, kept, usual=lines.odd <= LETTERS)
        _require_corners(lists, count, "line")
        return len(lists.sizes), lists

    for element in header.elements:
        if element.name == "vertex":
            places = tuple(element.names.index(axis) for axis in AXES)
            form = Form(tuple(one.type for one in element.properties), places, places)
            vertices += number_entries(lines, form, element.count, "vertices", _LINES)
        elif element.name == "face":
            faces += take_entries(lines, parse, element.count, "faces", _LINES)
        else:
            pass_over(lines, element, _LINES)
    require_end(lines, _LINES)
    table = np.concatenate(vertices)
    types = {one.name: one.type for one in _element(header, "vertex").properties}
    for column, axis in enumerate(AXES):  # rounded to the declared type, as in a binary file
        table[:, column] = table[:, column].astype(types[axis])
    return table, faces


def _read_binary(content: bytes, header: PlyHeader, kept: int) -> tuple[np.ndarray, list[Lists]]:
    count = _element(header, "vertex").count
    place, vertices, faces = header.offset, np.empty((0, 3)), []
    for element in header.elements:
        if not element.count:
            continue
        if element.name == "face":
            lists, place = unpack_lists(content, place, element, header.order, kept)
            _require_corners(lists, count, "byte")
            faces.append(lists)
        elif element.has_lists:
            place = unpack_lists(content, place, element, header.order, 0)[1]
        else:
            record = np.dtype([*zip(element.names, element.types(header.order), strict=True)])
            end = place + element.count * record.itemsize
            if end > len(content):
                raise PointsetError(f"expected {end} bytes, as its header says, found {len(content)}: it is cut off")
            if element.name == "vertex":
                vertices = _finite(np.frombuffer(content, record, element.count, place), place)
            place = end
    if place != len(content):
        raise PointsetError(
            f"byte {place}: expected the end of the file, as its header says, found {len(content)} bytes"
        )
    return vertices, faces


def _finite(table: np.ndarray, start: int) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        vertices = np.stack([table[axis].astype(np.float64) for axis in AXES], axis=1)
    wrong = np.flatnonzero(~np.isfinite(vertices).all(axis=1))
    if len(wrong):
        place = start + int(wrong[0]) * table.dtype.itemsize
        raise PointsetError(f"byte {place}: expected finite coordinates, found {vertices[wrong[0]].tolist()}")
    return vertices


def _require_corners(faces: Lists, count: int, unit: str) -> None:
    """Raise a PointsetError for faces with less than three corners, and for corners that are not vertices."""
    if (faces.sizes < 3).any():
        face = int(np.flatnonzero(faces.sizes < 3)[0])
        raise PointsetError(
            f"{unit} {faces.places[face]}: expected at least 3 corners of a face, found {faces.sizes[face]}"
        )
    wrong = np.flatnonzero((faces.values < 0) | (faces.values >= count))
    if len(wrong):
        face = int(np.searchsorted(np.cumsum(faces.sizes), wrong[0], side="right"))
        found = int(faces.values[wrong[0]])
        raise PointsetError(f"{unit} {faces.places[face]}: expected corners from 0 to {count - 1}, found {found}")
