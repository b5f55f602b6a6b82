"""Read point clouds in PLY files: the element "vertex" with properties x, y and z."""

from collections.abc import Sequence
from pathlib import Path

from pointset.data.readers.color_shares import color_columns
from pointset.data.readers.layouts import AXES, Binary, kept_columns, record_of
from pointset.data.readers.ply_header import PlyElement, PlyHeader, read_ply_header
from pointset.data.readers.typed_text import TypedText
from pointset.errors import PointsetError, quoted


def ply_layout(path: Path, features: tuple[str, ...] = ()) -> Binary | TypedText:
    """The layout of the vertices and wanted features in a PLY file without faces."""
    header = read_ply_header(path)
    counts = {element.name: element.count for element in header.elements}
    if counts.get("face") or counts.get("tristrips"):
        raise PointsetError(
            "is a mesh, among point clouds: keep meshes and clouds in two folders, or sample points on it"
        )
    if "vertex" not in counts:
        raise PointsetError(f"expected an element called vertex, found {quoted(', '.join(counts))}")
    place = [*counts].index("vertex")
    vertex, before, after = header.elements[place], header.elements[:place], header.elements[place + 1 :]
    if not {*AXES} <= {*vertex.names}:
        raise PointsetError(f"expected x, y and z of every point, found {quoted(', '.join(vertex.names))}")
    lists = next(
        (e.name for e in ((vertex, *before, *after) if header.order else (vertex,)) if e.count and e.has_lists), None
    )
    if lists is not None:
        raise PointsetError(f"has lists in its element {quoted(lists)}, so that points have no fixed place: drop them")
    if header.order:
        return _binary(header, vertex, before, after, features)
    kept_columns(vertex.names, features)
    return TypedText(
        tuple(vertex.names),
        tuple(one.type for one in vertex.properties),
        vertex.count,
        header.offset,
        header.next_line,
        before=tuple(before),
        after=tuple(after),
        features=features,
    )


def _binary(
    header: PlyHeader,
    vertex: PlyElement,
    before: Sequence[PlyElement],
    after: Sequence[PlyElement],
    features: Sequence[str],
) -> Binary:
    above, below = (sum(_bytes(one, header.order) for one in some) for some in (before, after))
    record = record_of(vertex.names, vertex.types(header.order), features)
    colors = color_columns(vertex.names, vertex.types(header.order))
    return Binary(vertex.count, header.offset + above, record, after=below, colors=colors)


def _bytes(element: PlyElement, order: str) -> int:
    return element.count * sum(kind.itemsize for kind in element.types(order)) if element.count else 0
