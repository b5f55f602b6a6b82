"""A small dataset of meshes, and builds of it, for the tests of builds."""

from pathlib import Path
from typing import Any

from pointset.data.catalogue.folders import list_folder
from pointset.data.pools.build import Made, PoolPlan, build_dataset
from pointset.data.pools.shapes import Sampling
from pointset.runs.workers import Workers

TETRAHEDRON = "OFF\n4 4 6\n0 0 0\n{size} 0 0\n0 {size} 0\n0 0 {size}\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
COUNT = 60


def build(folder: Path, workers: int | None = None, scheduler: str | None = None, **options: Any) -> Made:
    """Build all pools of a folder, and add their results up."""
    sampling = Sampling(options.pop("points", 50), options.pop("sampler", "uniform"), normals=True)
    pools = build_dataset(folder, sampling, workers=Workers(workers, scheduler), progress=False, **options)
    shapes, sampled = (sum(getattr(made, name) for made in pools.values()) for name in ("shapes", "sampled"))
    failures = {name: reason for made in pools.values() for name, reason in made.failures.items()}
    return Made(pools["train"].folder, shapes, sampled, failures)


def plan_of(folder: Path, split: str = "train", **options: Any) -> PoolPlan:
    sampling = Sampling(**{"points": 50, "normals": True} | options)
    return PoolPlan(list_folder(folder, split), sampling)


def contents(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes() for path in home.rglob("*") if path.suffix in (".npy", ".json")
    }


def write_mesh(folder: Path, number: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"shape{number}.off").write_text(TETRAHEDRON.format(size=number + 1))


def break_mesh(folder: Path, name: str) -> Path:
    path = folder / name
    path.write_text("OFF\n3 1 0\n0 0 0\n")
    return path
