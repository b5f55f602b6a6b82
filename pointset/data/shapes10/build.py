"""Generate shapes10 as a folder of OFF files."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from pointset.data.readers.meshes import Mesh
from pointset.data.readers.off import write_off
from pointset.data.shapes10 import furniture, vessels
from pointset.data.shapes10.defects import finished
from pointset.errors import PointsetError
from pointset.runs.progress import followed

if TYPE_CHECKING:
    from trimesh import Trimesh

KINDS: dict[str, Callable[[Generator], list[Trimesh]]] = {
    "bench": furniture.bench,
    "bookshelf": furniture.bookshelf,
    "chair": furniture.chair,
    "desk": furniture.desk,
    "dresser": furniture.dresser,
    "lamp": furniture.lamp,
    "mug": vessels.mug,
    "stool": furniture.stool,
    "table": furniture.table,
    "vase": vessels.vase,
}
SPLITS = ("train", "test")
FORMAT = 2
"""Version of the generator; increased whenever a seed gives other meshes."""
MARKER = "shapes10.json"
"""File with the format, written last; it marks a complete folder made by this generator."""


def make_shape(kind: str, split: str, number: int, seed: int = 0) -> Mesh:
    """Build instance `number`, from 0, of a kind and a split; it does not depend on the number of instances."""
    rng = np.random.default_rng((seed, list(KINDS).index(kind), SPLITS.index(split), number))
    return finished(KINDS[kind](rng), rng)


def is_current(folder: Path) -> bool:
    """True if a folder is complete and was made by this version of the generator."""
    try:
        return bool(json.loads((folder / MARKER).read_text(encoding="utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def build_shapes10(folder: Path, *, seed: int = 0, train: int = 100, test: int = 30, progress: bool = True) -> None:
    """Write the dataset unless it exists; the same seed gives the same bytes.

    Files are written to a temporary folder, which is renamed when it is complete. A folder made by another version is
    replaced, with a warning.

    Args:
        folder: target of `kind/split/kind_0001.off`; numbers continue from train to test, as in ModelNet.
        seed: seed of all instances.
        train: training instances per kind.
        test: test instances per kind.
        progress: show a bar, or lines if the output is not a terminal.

    Raises:
        PointsetError: the folder holds something that is not this dataset.
    """
    if is_current(folder):
        return
    _require_ours(folder)
    if any(folder.glob("*")):
        warnings.warn(f"{folder} was made by another version of shapes10 and is built again", UserWarning, stacklevel=2)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    whole = temporary / folder.name
    try:
        counts = {"train": train, "test": test}
        _write_shapes(whole, seed, counts, progress)
        marker = {"format": FORMAT, "seed": seed, "shapes_per_kind": counts}
        (whole / MARKER).write_text(json.dumps(marker) + "\n", encoding="utf-8")
        if folder.exists():
            folder.rename(temporary / "old")
        whole.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_shapes(folder: Path, seed: int, counts: dict[str, int], progress: bool) -> None:
    for kind in followed(KINDS, "building shapes10", "kind", len(KINDS), show=progress):
        for split in SPLITS:
            (folder / kind / split).mkdir(parents=True)
            for number in range(counts[split]):
                label = number + 1 + (counts["train"] if split == "test" else 0)
                mesh = make_shape(kind, split, number, seed)
                write_off(folder / kind / split / f"{kind}_{label:04d}.off", mesh)


def _require_ours(folder: Path) -> None:
    """Raise a PointsetError if a folder holds anything that no version of the generator writes."""
    if folder.exists() and not folder.is_dir():
        raise PointsetError(f"{folder} is not the generated shapes10, but a file: move it away")
    ours = re.compile(rf"{re.escape(MARKER)}|({'|'.join(KINDS)})(/({'|'.join(SPLITS)})(/\1_\d{{4}}\.off)?)?")
    for path in sorted(folder.rglob("*")):
        if not ours.fullmatch(path.relative_to(folder).as_posix()):
            raise PointsetError(
                f"{folder} is not the generated shapes10, it holds {path.relative_to(folder)}: move it away, and "
                "shapes10 will be built there"
            )
