"""Build the pools of all splits of a dataset in advance."""

from pathlib import Path

from pointset.data.catalogue.folders import list_folder
from pointset.data.catalogue.locate import locate_data
from pointset.data.catalogue.released import is_released
from pointset.data.options import DataOptions
from pointset.data.pools.plan import Plan, Sampling
from pointset.data.pools.store import Made, build_pool
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError
from pointset.runs.workers import Workers

SPLITS = ("train", "test")


def build_dataset(
    name_or_folder: str | Path,
    *,
    points: int = DataOptions.pool_points,
    sampler: str = "uniform",
    seed: int = 0,
    normals: bool = False,
    workers: int | None = None,
    backend: str = "loky",
    scheduler: str | None = None,
    on_error: str = "raise",
    rebuild: bool = False,
    split_seed: int = 0,
    progress: bool = True,
) -> dict[str, Made]:
    """Sample every mesh of a dataset into pools of points on disk.

    Shapes finished by an earlier build, even an interrupted one, are not sampled again. The result does not depend on
    the workers. On a cluster, they need the mesh files under the same paths; only this process writes.

    The arguments are those of `Sampling`, `Workers`, `build_pool` and `load_dataset`. Returns the pools by split.

    Raises:
        UnreadableShapesError: meshes cannot be used, and `on_error` is "raise" or no mesh of a split is usable.
        PointsetError: the dataset has no meshes, an option is wrong, the disk is full or read-only, or a pool is
            damaged and `rebuild` is False.
    """
    sampling, spread = Sampling(points, sampler, seed, normals), Workers(workers, backend, scheduler)
    spread.check()
    _, folder = locate_data(name_or_folder, progress=progress)
    if is_released(folder):
        raise PointsetError(f"{name_or_folder} holds sampled points already ({folder}): there is nothing to build")
    pools: dict[str, Made] = {}
    errors: list[UnreadableShapesError] = []
    for split, plan in _plans(folder, split_seed, sampling).items():
        try:
            pools[split] = build_pool(plan, spread, on_error=on_error, rebuild=rebuild, progress=progress)
        except UnreadableShapesError as error:  # raised below, after the other splits
            errors.append(error)
    if errors:
        failures = {name: reason for error in errors for name, reason in error.failures.items()}
        finished = sum(error.finished for error in errors) + sum(made.shapes for made in pools.values())
        reports = [report for error in errors for report in error.reports]
        raise UnreadableShapesError(failures, finished, reports, errors[0].remedy)
    return pools


def _plans(folder: Path, split_seed: int, sampling: Sampling) -> dict[str, Plan]:
    """Plans of the pools, for the splits that the folder has."""
    plans: dict[str, Plan] = {}
    absent: list[PointsetError] = []
    for split in SPLITS:
        try:
            listing = list_folder(folder, split, seed=split_seed)
        except PointsetError as error:
            absent.append(error)
        else:
            if listing.kind == "clouds":
                raise PointsetError(f"{folder} holds point clouds, which need no sampling: load them with load_dataset")
            plans[split] = Plan.of(f"{folder.name}-{split}", listing, sampling)
    if not plans:
        raise absent[0]
    return plans
