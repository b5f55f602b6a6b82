"""Generate shapes10 as a folder of OFF files."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pointset.data.readers.meshes import Mesh
from pointset.data.readers.off import write_off
from pointset.data.shapes10.defects import finished
from pointset.data.shapes10.kinds import bench, bookshelf, chair, desk, dresser, lamp, mug, stool, table, vase
from pointset.errors import PointsetError
from pointset.runs.atomic import write_json
from pointset.runs.progress import followed

if TYPE_CHECKING:
    from trimesh import Trimesh

KINDS: dict[str, Callable[[Generator], list[Trimesh]]] = {
    function.__name__: function for function in (bench, bookshelf, chair, desk, dresser, lamp, mug, stool, table, vase)
}
SPLITS = ("train", "test")
FORMAT = 2
"""Version of the generator; increased whenever a seed gives other meshes."""
MARKER = "shapes10.json"
"""File with the format, written last; it marks a complete folder made by this generator."""


def make_shape(kind: str, split: str, number: int, seed: int = 0) -> Mesh:
    """Build instance `number`, from 0, of a kind and a split; it does not depend on the number of instances."""
    return make_labelled(kind, split, number, seed)[0]


def make_labelled(kind: str, split: str, number: int, seed: int = 0) -> tuple[Mesh, NDArray[np.int64]]:
    """As `make_shape`, with the index in `PARTS` of the part to which each face belongs, [F]."""
    rng = np.random.default_rng((seed, list(KINDS).index(kind), SPLITS.index(split), number))
    return finished(KINDS[kind](rng), rng)


def label_faces(path: Path, mesh: Mesh) -> NDArray[np.int64]:
    """The part of each face of a mesh that was read from a folder of shapes10, [F], as indices in `PARTS`.

    The files have no labels: the shape is built again, from the seed that the folder was made with.

    Raises:
        PointsetError: the file does not belong to such a folder, or its faces differ from those of the shape.
    """
    kind, split, folder = path.parent.parent.name, path.parent.name, path.parents[2]
    try:
        made = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        before = made["shapes_per_kind"]["train"] if split == "test" else 0
        labelled, labels = make_labelled(kind, split, int(path.stem.rpartition("_")[2]) - 1 - before, made["seed"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise PointsetError(f"{path} has no labels: only meshes of shapes10 have parts") from error
    if not np.array_equal(mesh.faces, labelled.faces):
        raise PointsetError(f"{path} has other faces than shapes10 of this version: delete {folder} to build it again")
    return labels


def is_current(folder: Path) -> bool:
    """True if a folder is complete and was made by this version of the generator."""
    try:
        return bool(json.loads((folder / MARKER).read_text(encoding="utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def build_shapes10(folder: Path, *, seed: int = 0, train: int = 100, test: int = 30, progress: bool = True) -> None:
    """Write the dataset unless it exists; the same seed gives the same bytes.

    Files are written to a temporary folder beside it, which is renamed when it is complete.

    Args:
        folder: target of `kind/split/kind_0001.off`; numbers continue from train to test, as in ModelNet.
        seed: seed of all instances.
        train: training instances per kind.
        test: test instances per kind.
        progress: show a bar, or lines if the output is not a terminal.

    Raises:
        PointsetError: the folder holds something else, such as the dataset of another version.
    """
    if is_current(folder):
        return
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise PointsetError(
            f"{folder} is not the shapes10 of this version of pointset: move it away, and shapes10 will be built there"
        )
    counts = {"train": train, "test": test}
    temporary = folder.with_name(f".{folder.name}-{os.getpid()}")
    try:
        for kind in followed(KINDS, "building shapes10", "kind", len(KINDS), show=progress):
            for split in SPLITS:
                (temporary / kind / split).mkdir(parents=True, exist_ok=True)
                for number in range(counts[split]):
                    label = number + 1 + (train if split == "test" else 0)
                    mesh = make_shape(kind, split, number, seed)
                    write_off(temporary / kind / split / f"{kind}_{label:04d}.off", mesh)
        write_json(temporary / MARKER, {"format": FORMAT, "seed": seed, "shapes_per_kind": counts})
        temporary.replace(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
