"""Ragged pools: clouds of several sizes, read from their files once and then mapped from disk.

A pool is a folder `home()/pools/<name>-clouds-<key>` with `points.f32`, float32 [T, 3] in little-endian rows, the same
for `normals.f32` on request, and `clouds.json`, which holds where each cloud begins, its checksum and the size and time
of its file. The key is a hash of the files' names and places. A pool whose files have another size or time by now is
read again, which changes nothing but what changed.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from pointset.data.catalogue.folders import ShapeFile
from pointset.data.catalogue.home import make_folder, pools_home
from pointset.data.files.clouds import Cloud, read_cloud
from pointset.data.pools.partial_pool import checksum, told_plainly
from pointset.data.pools.pool import AS_RELEASED, Pool
from pointset.runs.workers import recycled_quietly

FORMAT = 1
FILE = "clouds.json"
MANY = 64
"""Files from which on worker processes read."""


def cloud_pool(
    name: str,
    shapes: Sequence[ShapeFile],
    classes: Sequence[str],
    *,
    normals: bool = False,
    progress: bool = True,
    workers: int | None = None,
) -> Pool:
    """Open the ragged pool of some cloud files; make it first if it is not there or a file has changed.

    Args:
        name: begins the folder's name, for people who look.
        shapes: the files, M of them.
        classes: names of the classes.
        normals: keep the normals too; every file must have them.
        progress: show a bar, if the output is a terminal.
        workers: processes that read; one per core when not given.

    Returns:
        A pool with points [T, 3] and offsets [M + 1], in the order of the shapes, mapped from disk, read-only.

    Raises:
        CloudError: a file cannot be used; see `pointset.data.files.clouds.read_cloud`.
        PointsetError: the disk is full or read-only.
    """
    arrays = ("points", "normals") if normals else ("points",)
    identity = {"names": [[shape.name, str(shape.path)] for shape in shapes], "arrays": arrays, "format": FORMAT}
    key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:16]
    folder = pools_home() / f"{name}-clouds-{key}"
    sources = _sources(shapes)
    found = _facts(folder, sources, arrays)
    if found is None:
        with _locked(folder):
            found = _facts(folder, sources, arrays) or _make(folder, shapes, sources, arrays, progress, workers)
    offsets = np.array(found["offsets"], np.int64)
    mapped = {
        array: np.memmap(folder / f"{array}.f32", np.dtype("<f4"), "r", shape=(int(offsets[-1]), 3)) for array in arrays
    }
    return Pool(
        mapped["points"],
        [shape.name for shape in shapes],
        np.array([shape.label for shape in shapes], np.int64),
        list(classes),
        AS_RELEASED,
        normals=mapped.get("normals"),
        checksums=tuple(found["checksums"]),
        offsets=offsets,
    )


@contextlib.contextmanager
def _locked(folder: Path) -> Generator[None, None, None]:
    """Keep other processes from making the same pool; they wait."""
    from filelock import FileLock

    make_folder(folder.parent)
    lock = FileLock(folder.with_name(folder.name + ".lock"))
    with told_plainly(folder.parent):
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _facts(folder: Path, sources: list[list[int]], arrays: Sequence[str]) -> dict[str, Any] | None:
    """What is known of the pool, if it is there, whole, and made from the files as they are now."""
    try:
        found: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
        size = int(found["offsets"][-1]) * 3 * 4
        whole = all((folder / f"{array}.f32").stat().st_size == size for array in arrays)
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        return None
    return found if whole and found.get("sources") == sources else None


def _make(
    folder: Path,
    shapes: Sequence[ShapeFile],
    sources: list[list[int]],
    arrays: Sequence[str],
    progress: bool,
    workers: int | None,
) -> dict[str, Any]:
    """Read all files into a neighbouring folder and rename it; the caller holds the lock."""
    partial = folder.with_name(folder.name + ".partial")
    sizes, checksums = [], []
    with told_plainly(folder), contextlib.ExitStack() as stack:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir()
        files = {array: stack.enter_context((partial / f"{array}.f32").open("wb")) for array in arrays}
        clouds = stack.enter_context(contextlib.closing(_read_all(shapes, "normals" in arrays, workers)))
        bar = tqdm(clouds, f"reading {folder.name}", len(shapes), unit="cloud", disable=None if progress else True)
        for cloud in bar:
            for array, file in files.items():
                file.write(np.asarray(getattr(cloud, array), "<f4").tobytes())
            sizes.append(len(cloud.points))
            checksums.append(checksum(np.asarray(cloud.points, "<f4").tobytes()))
    facts = {"sources": sources, "offsets": [0, *np.cumsum(sizes).tolist()], "checksums": checksums}
    with told_plainly(folder):
        (partial / FILE).write_text(json.dumps(facts), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        partial.replace(folder)
    return facts


def _read_all(shapes: Sequence[ShapeFile], normals: bool, workers: int | None) -> Generator[Cloud, None, None]:
    """The clouds in order, as they are read."""
    from joblib import Parallel, delayed

    jobs = 1 if len(shapes) < MANY else (workers or os.cpu_count() or 1)
    if jobs == 1:
        yield from (read_cloud(shape.path, normals=normals) for shape in shapes)
    else:
        tasks = (delayed(read_cloud)(shape.path, normals=normals) for shape in shapes)
        with recycled_quietly():
            yield from Parallel(jobs, return_as="generator")(tasks)


def _sources(shapes: Sequence[ShapeFile]) -> list[list[int]]:
    """Size and time of every file, as they are now."""
    facts = (shape.path.stat() for shape in shapes)
    return [[fact.st_size, fact.st_mtime_ns] for fact in facts]
