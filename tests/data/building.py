"""A small dataset of meshes, and builds of it, for the tests of builds."""

from pathlib import Path
from typing import Any, NamedTuple

from pointset.data.catalogue.folders import list_folder
from pointset.data.pools.build import PoolPlan, build_pool
from pointset.data.pools.manifest import Sampling, read_manifest
from pointset.runs.workers import Workers

COUNT, TRAINING = 60, 48
"""Shapes of `meshes`."""


class Built(NamedTuple):
    folder: Path
    shapes: int
    sampled: int
    failures: dict[str, str]


def build(folder: Path, workers: int | None = None, *, on_error: str = "raise", **options: Any) -> Built:
    plan = plan_of(folder, **options)
    sampled = build_pool(plan, Workers(workers), on_error=on_error, progress=False)
    manifest = read_manifest(plan.folder)
    return Built(plan.folder, len(manifest.kept), sampled, manifest.failures)


def plan_of(folder: Path, split: str = "train", **options: Any) -> PoolPlan:
    sampling = Sampling(**{"points": 50, "normals": True} | options)
    return PoolPlan(list_folder(folder, split), sampling)


def contents(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.suffix in (".npy", ".json")
    }


def break_mesh(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("OFF\n3 1 0\n0 0 0\n")
    return path
