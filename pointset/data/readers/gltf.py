"""Read glTF 2.0 (Khronos Group, "glTF 2.0 Specification", chapters 3 and 4): .glb files, and .gltf with its buffers.

The mesh has the triangles, strips and fans of the default scene, transformed by their nodes (see `gltf_scene`). All
lengths of chunks, buffers, views and accessors, and all indices are checked before use. Unsupported features that would
change the geometry are refused: required extensions, sparse accessors, skins and morph targets.
"""

import base64
import binascii
import struct
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote

from pointset.data.readers.gltf_scene import read_scene
from pointset.data.readers.json_items import Item, parse_json
from pointset.data.readers.meshes import Mesh, MeshError
from pointset.errors import PointsetError, quoted

_HEADER = struct.Struct("<4s2I")
_CHUNK = struct.Struct("<I4s")
_HARMLESS_EXTENSIONS = ("KHR_materials_", "KHR_texture_", "EXT_texture_")


def parse_gltf(content: bytes, path: Path) -> Mesh:
    """Parse the mesh in a .glb or .gltf file; external buffers are read from its folder.

    Args:
        content: all bytes of the file.
        path: path of the file.

    Raises:
        MeshError: the file is not as described above; the message begins with the path and the place.
    """
    try:
        description, binary = _chunks(content) if path.suffix.lower() == ".glb" else (content, None)
        document = parse_json(description)
        version = document.item("asset").text("version")
        if not version.startswith("2.") or not version[2:].isdecimal():
            raise PointsetError(f"asset.version: expected glTF 2, found {quoted(version)}")
        for name in document.array("extensionsRequired"):
            if not str(name).startswith(_HARMLESS_EXTENSIONS):
                raise PointsetError(f"requires the extension {quoted(name)}, which is not supported: export without it")
        vertices, faces = read_scene(document, Buffers(document, binary, path.parent))
    except PointsetError as error:
        message = str(error)
        raise MeshError(f"{path}{',' if message.startswith('byte ') else ':'} {message}") from error
    return Mesh(vertices, faces)


def _chunks(content: bytes) -> tuple[bytes, bytes | None]:
    """The JSON chunk of a .glb file, and its binary chunk, if any."""
    if len(content) < _HEADER.size + _CHUNK.size or content[:4] != b"glTF":
        raise PointsetError("expected a .glb file, which begins with the word glTF")
    _, version, length = _HEADER.unpack_from(content)
    if version != 2:
        raise PointsetError(f"byte 4: expected version 2 of glTF, found {version}")
    if length != len(content):
        raise PointsetError(
            f"byte 8: expected {length} bytes, as the header says, found {len(content)}: it was cut off"
        )
    found: list[tuple[bytes, bytes]] = []
    place = _HEADER.size
    while place < length:
        if place + _CHUNK.size > length:
            raise PointsetError(f"byte {place}: expected the head of a chunk, found the end of the file")
        size, kind = _CHUNK.unpack_from(content, place)
        place += _CHUNK.size
        if size % 4 or place + size > length:
            raise PointsetError(
                f"byte {place - _CHUNK.size}: expected the length of a chunk, a multiple of 4 up to {length - place}, "
                f"found {size}"
            )
        found.append((kind, content[place : place + size]))
        place += size
    kinds = [kind for kind, _ in found]
    if kinds[0] != b"JSON" or b"JSON" in kinds[1:] or b"BIN\0" in kinds[2:]:
        raise PointsetError("expected a chunk of JSON first, then at most one of binary numbers, then only other types")
    return found[0][1], found[1][1] if kinds[1:2] == [b"BIN\0"] else None


@dataclass
class Buffers:
    """The bytes of a document's buffers."""

    document: Item
    binary: bytes | None
    """Binary chunk of a .glb file, which is the first buffer."""
    folder: Path
    """Folder of external buffers."""
    found: dict[int, bytes] = field(default_factory=dict)
    """Buffers that have been read, by index."""

    def read(self, index: int) -> bytes:
        """Read the bytes of a buffer."""
        if index not in self.found:
            buffer = self.document.member("buffers", index)
            length = buffer.whole("byteLength", least=1)
            content = self._resolve(buffer) if "uri" in buffer else self._binary(buffer, index, length)
            if len(content) < length:
                raise PointsetError(f"{buffer.place}: expected {length} bytes, found {len(content)}: it was cut off")
            self.found[index] = content[:length]
        return self.found[index]

    def _binary(self, buffer: Item, index: int, length: int) -> bytes:
        if index or self.binary is None:
            raise buffer.error("uri", "a uri, or the binary chunk of a .glb file")
        if len(self.binary) > length + 3:  # up to 3 bytes of padding
            raise PointsetError(
                f"{buffer.place}: expected {length} bytes, found {len(self.binary)} in the binary chunk"
            )
        return self.binary

    def _resolve(self, buffer: Item) -> bytes:
        uri = buffer.text("uri")
        if uri.startswith("data:"):
            head, _, data = uri.partition(",")
            try:
                if head.endswith(";base64"):
                    return base64.b64decode(data, validate=True)
            except (binascii.Error, ValueError):
                pass
            raise buffer.error("uri", "data in base64")
        path = _external_file(self.folder, uri)
        if path is None:
            raise buffer.error("uri", "a file beside this one")
        try:
            if not path.is_file():  # reading a device may never end
                raise buffer.error("uri", "a file that is there")
            return path.read_bytes()
        except OSError as error:
            raise PointsetError(
                f"{buffer.place}.uri: {quoted(unquote(uri))} cannot be read: {error.strerror}"
            ) from error


def files_beside(path: Path) -> list[Path]:
    """The existing external buffers of a .glb or .gltf file; empty if the file cannot be parsed.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        document = parse_json(_description(path))
        uris = [document.member("buffers", index).values.get("uri") for index in range(len(document.array("buffers")))]
    except PointsetError:
        return []
    named = [_external_file(path.parent, uri) for uri in uris if isinstance(uri, str) and not uri.startswith("data:")]
    return [file for file in named if file is not None and file.is_file()]


def _description(path: Path) -> bytes:
    """The JSON of a file, without the binary chunk of a .glb file."""
    with path.open("rb") as file:
        if path.suffix.lower() != ".glb":
            return file.read()
        head = file.read(_HEADER.size + _CHUNK.size).ljust(_HEADER.size + _CHUNK.size, b"\0")
        length, _ = _CHUNK.unpack_from(head, _HEADER.size)
        return file.read(min(length, path.stat().st_size))


def _external_file(folder: Path, uri: str) -> Path | None:
    """The file of a relative URI; None for a URL or an absolute path."""
    name = unquote(uri)
    return None if "://" in name or "\0" in name or Path(name).is_absolute() else folder / name
