"""Read STL, binary or as text: triangles without common vertices.

The normals are ignored. trimesh (5.2) reads some cut-off text as fewer triangles without a word.
"""

import re
import warnings

import numpy as np

from pointset.data.readers.meshes import Mesh
from pointset.errors import PointsetError

_RECORD = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")])
_HEADER = 84
"""Bytes before the first record: a comment, and the number of triangles in the last four."""
_CORNER = rb"vertex\s+([-+.\deE]+)\s+([-+.\deE]+)\s+([-+.\deE]+)\s+"
_FACET = re.compile(
    rb"\bfacet\s+normal\s+\S+\s+\S+\s+\S+\s+outer\s+loop\s+" + 3 * _CORNER + rb"endloop\s+endfacet\b", re.IGNORECASE
)
_ONCE = re.compile(rb"\b(outer\s+loop|endloop|endfacet)\b", re.IGNORECASE)
"""Words that stand once in every facet."""


def parse_stl(content: bytes, name: str) -> Mesh:
    """The mesh in an STL file; a PointsetError if it is damaged, a warning if text lacks its last line."""
    count = int.from_bytes(content[_HEADER - 4 : _HEADER], "little")
    size = _HEADER + count * _RECORD.itemsize
    if content[:_HEADER].lower().split()[:1] == [b"solid"] and re.search(rb"(?i)\bfacet\s+normal\b", content[:4096]):
        corners = _corners_of_text(content, name)
    elif len(content) >= max(_HEADER, size) and not content[size:].strip(b"\0 \r\n"):
        corners = np.frombuffer(content, _RECORD, count, _HEADER)["corners"]
    else:
        found = f"has {len(content):,} bytes, and a binary STL of {count:,} triangles has {size:,}"
        raise PointsetError(f"{found}: it is cut off or damaged")
    return Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def _corners_of_text(content: bytes, name: str) -> np.ndarray:
    """Coordinates [facets, 9]."""
    facets = list(_FACET.finditer(content))
    words = len(_ONCE.findall(content))
    rest = content[facets[-1].end() :].split() if facets else []
    if not facets or words != 3 * len(facets) or (rest and rest[0].lower() != b"endsolid"):
        raise PointsetError(
            f"has {len(facets):,} whole facets, and {words:,} words for 3 in each: it is cut off or damaged"
        )
    if not rest:
        warnings.warn(f"{name}: does not end with endsolid: the last facets may be missing", stacklevel=2)
    return np.array([facet.groups() for facet in facets]).astype(np.float64)
