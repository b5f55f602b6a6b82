"""From a seed to a folder of OFF files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from pointset.data.meshes import Mesh
from pointset.data.off import write_off
from pointset.data.shapes10 import furniture, vessels
from pointset.data.shapes10.defects import finished

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


def make_shape(kind: str, split: str, number: int, seed: int = 0) -> Mesh:
    """Build one instance.

    Args:
        kind: a key of `KINDS`.
        split: "train" or "test".
        number: from 0; the instance does not depend on how many others there are.
        seed: of the whole data set.
    """
    rng = np.random.default_rng((seed, list(KINDS).index(kind), SPLITS.index(split), number))
    return finished(KINDS[kind](rng), rng)


def build_shapes10(folder: Path, *, seed: int = 0, train: int = 100, test: int = 30, progress: bool = True) -> None:
    """Write the data set, unless it is there; the same seed gives the same bytes.

    Files are written beside `folder` and renamed into place when all are there: a build that was killed leaves nothing
    that looks finished.

    Args:
        folder: becomes `folder/kind/split/kind_0001.off`; numbers run on from train to test, as in ModelNet.
        seed: of every instance.
        train: instances per kind for training.
        test: instances per kind for testing.
        progress: show a bar, where the output is a terminal.
    """
    from tqdm.auto import tqdm

    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    counts = {"train": train, "test": test}
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for kind in tqdm(KINDS, desc="building shapes10", unit="kind", disable=None if progress else True):
            for split in SPLITS:
                (temporary / kind / split).mkdir(parents=True)
                for number in range(counts[split]):
                    label = number + 1 + (train if split == "test" else 0)
                    mesh = make_shape(kind, split, number, seed)
                    write_off(temporary / kind / split / f"{kind}_{label:04d}.off", mesh)
        os.chmod(temporary, 0o755)  # noqa: PTH101 - mkdtemp gives a private folder
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
