"""Pools of points sampled on meshes, kept on disk and mapped into memory.

A pool is a folder `home()/pools/<name>-<key>` with `points.npy`, float32 [N, P, 3], and `manifest.json`. The
key is a hash of everything the points depend on: source files, sampler, number of points, seed, version. A
pool is made in `<name>-<key>.partial` under a lock and renamed when it is whole, so a pool that is there is
whole; a run that was stopped in between leaves its finished shapes to the next.
"""

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pointset.data.folders import ShapeFile
from pointset.data.home import make_folder, pools_home
from pointset.data.meshes import MeshError, read_mesh
from pointset.data.point_sets import Pool
from pointset.data.sampling import SAMPLERS, sample_points, seed_for
from pointset.errors import PointsetError

FORMAT = 1
"""Of the files; raise it when they, or the points that a sampler gives, change."""


def mesh_pool(
    name: str,
    shapes: Sequence[ShapeFile],
    classes: Sequence[str],
    *,
    points: int,
    sampler: str = "uniform",
    seed: int = 0,
    progress: bool = True,
) -> Pool:
    """Open the pool of some shapes; make it first if it is not there.

    Args:
        name: begins the folder's name, for people who look.
        shapes: the mesh files, N of them.
        classes: names of the classes.
        points: points per shape, P.
        sampler: see `pointset.data.sampling.sample_points`.
        seed: each shape is sampled with its own seed, made from this one and the shape's name.
        progress: show a bar, if the output is a terminal.

    Returns:
        A pool whose points [N, P, 3] are mapped from disk, read-only.

    Raises:
        MeshError: a file cannot be read or sampled; the message names it.
        PointsetError: an option is wrong, or a pool on disk is damaged; the message says what to delete.
    """
    from filelock import FileLock

    if points < 1:
        raise PointsetError(f"pool_points={points} makes no pool: ask for at least 1 point per shape")
    if sampler not in SAMPLERS:
        raise PointsetError(f"sampler={sampler!r} is unknown: choose one of {', '.join(SAMPLERS)}")
    manifest = _manifest(shapes, classes, points, sampler, seed)
    folder = pools_home() / f"{name}-{_key(manifest)}"
    if not folder.is_dir():
        make_folder(folder.parent)
        with FileLock(folder.with_name(folder.name + ".lock")):
            if not folder.is_dir():
                _make(folder, shapes, manifest, progress)
    return Pool(
        _open(folder, manifest),
        [shape.name for shape in shapes],
        np.array([shape.label for shape in shapes], np.int64),
        list(classes),
        sampler,
    )


def _manifest(
    shapes: Sequence[ShapeFile], classes: Sequence[str], points: int, sampler: str, seed: int
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": version("pointset"),
        "sampler": sampler,
        "points": points,
        "seed": seed,
        "classes": list(classes),
        "shapes": [_source(shape) for shape in shapes],
    }


def _source(shape: ShapeFile) -> dict[str, Any]:
    """What tells a mesh file from another version of it."""
    facts = shape.path.stat()
    return {
        "name": shape.name,
        "label": shape.label,
        "file": str(shape.path),
        "bytes": facts.st_size,
        "modified_ns": facts.st_mtime_ns,
    }


def _key(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()[:16]


def _make(folder: Path, shapes: Sequence[ShapeFile], manifest: dict[str, Any], progress: bool) -> None:
    """Sample all shapes into a neighbouring folder and rename it; the caller holds the lock."""
    partial = folder.with_name(folder.name + ".partial")
    make_folder(partial)
    points = _unfinished(partial / "points.npy", (len(shapes), manifest["points"], 3))
    bar = tqdm(shapes, desc=f"sampling {folder.name}", unit="mesh", disable=None if progress else True)
    for row, shape in zip(points, bar, strict=True):
        if np.isnan(row).any():
            row[:] = _sample(shape, manifest)
    points.flush()
    (partial / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    partial.replace(folder)


def _unfinished(path: Path, shape: tuple[int, int, int]) -> np.memmap[Any, Any]:
    """The array to fill: what a stopped run left, or a new one; NaN marks what is still to do."""
    try:
        points = np.lib.format.open_memmap(path, mode="r+")
        if points.shape == shape and points.dtype == np.float32:
            return points
    except (OSError, ValueError, EOFError):
        pass
    points = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    points[:] = np.nan
    points.flush()
    return points


def _sample(shape: ShapeFile, manifest: dict[str, Any]) -> NDArray[np.float32]:
    """The points of one shape, [P, 3]."""
    mesh = read_mesh(shape.path)
    seed = seed_for(manifest["seed"], shape.name)
    try:
        return sample_points(mesh, manifest["points"], seed=seed, sampler=manifest["sampler"])
    except MeshError as error:
        raise MeshError(f"{shape.path}: {error}") from error


def _open(folder: Path, expected: dict[str, Any]) -> NDArray[np.float32]:
    """Map the points of a finished pool [N, P, 3], once its files agree with what they should be."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        points = np.load(folder / "points.npy", mmap_mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise _damaged(folder, str(error)) from error
    if manifest != expected:
        raise _damaged(folder, "manifest.json says something else than its name")
    shape = (len(expected["shapes"]), expected["points"], 3)
    if points.shape != shape or points.dtype != np.float32:
        raise _damaged(folder, f"points.npy is {points.dtype} {list(points.shape)}, not {list(shape)}")
    return points


def _damaged(folder: Path, why: str) -> PointsetError:
    return PointsetError(f"the pool of points {folder} is damaged ({why}): delete that folder and run again")
