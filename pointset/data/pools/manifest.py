"""What a pool is made of, as data: written beside its points and compared with what they should be.

The number of the format changes when the files, or the points that a sampler gives, change; a pool of another format
is refused. The version of the library is written down for people, and decides nothing.
"""

import hashlib
import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any

from pointset.data.catalogue.folders import ShapeFile
from pointset.data.pools.shape_jobs import Sampling
from pointset.data.pools.sources import Source
from pointset.errors import PointsetError

FORMAT = 2
FILE = "manifest.json"


@dataclass(frozen=True)
class Plan:
    """What to make: the shapes in their one order, by class and name, whatever the order they were given in."""

    name: str
    """Begins the folder's name, for people who look."""
    shapes: tuple[ShapeFile, ...]
    classes: tuple[str, ...]
    sampling: Sampling

    @classmethod
    def of(cls, name: str, shapes: Sequence[ShapeFile], classes: Sequence[str], sampling: Sampling) -> "Plan":
        """Put the shapes in order."""
        in_order = sorted(shapes, key=lambda shape: (shape.label, PurePosixPath(shape.name).parts))
        return cls(name, tuple(in_order), tuple(classes), sampling)

    @property
    def folder(self) -> Path:
        """The data set's folder, which the shapes' names are relative to."""
        shape = self.shapes[0]
        return shape.path.parents[len(PurePosixPath(shape.name).parts) - 1]

    @property
    def identity(self) -> dict[str, Any]:
        """What tells this pool from others; not what may be wrong with it."""
        return {
            "folder": str(self.folder),
            "classes": list(self.classes),
            **vars(self.sampling),
            "names": [[shape.name, shape.label, str(shape.path)] for shape in self.shapes],
        }

    @property
    def key(self) -> str:
        """A hash of the identity, for the folder's name."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]

    def command(self, *flags: str) -> str:
        """The command that makes this pool."""
        return build_command(self.folder, self.sampling, *flags)


def build_command(folder: str | Path, sampling: Sampling, *flags: str) -> str:
    """The command that makes the pools of a folder."""
    words = ["pointset", "data", "build", str(folder), "--points", str(sampling.points)]
    words += ["--sampler", sampling.sampler, "--seed", str(sampling.seed)]
    return shlex.join([*words, *(["--normals"] if sampling.normals else []), *flags])


@dataclass(frozen=True)
class Entry:
    """One shape of a pool."""

    name: str
    label: int
    file: str
    source: Source
    checksums: dict[str, str] = field(default_factory=dict)
    """BLAKE2b of its row in each array."""
    skipped: str = ""
    """Why it has no row; empty if it has one."""


@dataclass(frozen=True)
class Manifest:
    """All that is known about a finished pool."""

    folder: str
    classes: tuple[str, ...]
    sampling: Sampling
    entries: tuple[Entry, ...]

    @property
    def kept(self) -> list[Entry]:
        """The shapes that have a row, in the order of the rows."""
        return [entry for entry in self.entries if not entry.skipped]

    @property
    def skipped(self) -> list[Entry]:
        """The shapes that could not be used."""
        return [entry for entry in self.entries if entry.skipped]

    @property
    def skip_flags(self) -> tuple[str, ...]:
        """What the command that makes this pool anew needs for its skipped shapes."""
        return ("--on-error", "skip") if self.skipped else ()

    def is_of(self, plan: Plan) -> bool:
        """Whether it describes what was planned."""
        names = [[entry.name, entry.label, entry.file] for entry in self.entries]
        found = {"folder": self.folder, "classes": list(self.classes), **vars(self.sampling), "names": names}
        return found == plan.identity

    def as_text(self) -> str:
        """The JSON that is written: a line per shape."""
        head = {
            "format": FORMAT,
            "version": version("pointset"),
            "folder": self.folder,
            "classes": self.classes,
            **vars(self.sampling),
            "skipped": [entry.name for entry in self.skipped],
        }
        lines = [
            json.dumps({**vars(entry), "source": vars(entry.source)}, ensure_ascii=False) for entry in self.entries
        ]
        body = ",\n  ".join(lines)
        return f'{json.dumps(head, indent=1, ensure_ascii=False)[:-2]},\n "shapes": [\n  {body}\n ]\n}}\n'


def read_manifest(folder: Path) -> Manifest:
    """Read a pool's manifest.

    Raises:
        PointsetError: it is missing, damaged or of another format; the message says which, and not yet what to do.
    """
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise PointsetError(f"it has format {content['format']}, and this version of pointset reads {FORMAT}")
        entries = [Entry(**{**shape, "source": Source(**shape["source"])}) for shape in content["shapes"]]
        sampling = Sampling(**{name: content[name] for name in Sampling.__dataclass_fields__})
        return Manifest(content["folder"], tuple(content["classes"]), sampling, tuple(entries))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PointsetError(f"its {FILE} cannot be read: {type(error).__name__}: {error}") from error
