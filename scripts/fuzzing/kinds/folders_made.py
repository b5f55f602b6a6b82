"""What is flipped: a dataset, its pools, a stopped and a finished training, and a comparison, made once."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

OFF = "OFF\n4 4 6\n0 0 0\n{} 0 0\n0 {} 0\n0 0 {}\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
POINTS = 16


@contextmanager
def pools_in(home: Path) -> Iterator[None]:
    """The pools of a folder in place of the user's."""
    before = os.environ.get("POINTSET_HOME")
    os.environ["POINTSET_HOME"] = str(home)
    try:
        yield
    finally:
        del os.environ["POINTSET_HOME"]
        if before is not None:
            os.environ["POINTSET_HOME"] = before


@cache
def fixture() -> Path:
    """A dataset, its pools, a stopped and a finished training, and a comparison, made once and kept to the end."""
    import atexit

    folder = Path(tempfile.mkdtemp(prefix="flips-fixture-"))
    owner = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == owner else None)
    random = np.random.default_rng(0)
    for label in ("flat", "tall"):
        for number in range(18):
            path = folder / "data" / label / ("train" if number < 12 else "test") / f"{label}_{number:04d}.off"
            path.parent.mkdir(parents=True, exist_ok=True)
            stretch = random.uniform(0.5, 1.5, 3) * ((1, 1, 0.3) if label == "flat" else (0.5, 0.5, 2))
            path.write_text(OFF.format(*stretch), encoding="ascii")
    with pools_in(folder / "home"):
        _train(folder)
        go_on_comparing(folder / "comparison", folder, robust=True)
        _half_a_pool(folder)
    return folder


def _experiment(folder: Path, robust: bool) -> Any:
    from pointset.comparison.experiment import Entry, Experiment
    from pointset.tasks.classification.task import Classification
    from pointset.training.recipe import Recipe
    from pointset.zoo.options import ModelOptions

    return Experiment(
        models=(Entry("rff-max"), Entry("isab4-pma")),
        task=Classification(data=str(folder / "data"), points=(POINTS,), robustness_seeds=(0,) if robust else ()),
        seeds=(0, 1),
        model=ModelOptions(dim=8),
        recipe=Recipe(epochs=2, batch_size=8, device="cpu"),
    )


def go_on_comparing(out: Path, folder: Path, robust: bool) -> dict[str, Any]:
    """A comparison begun or gone on with, in this process; its tables and statistics."""
    from pointset.comparison.comparing import run_one
    from pointset.comparison.results import gather
    from pointset.comparison.runs import Failure, claim_folder, make_runs
    from pointset.comparison.tables import save
    from pointset.errors import PointsetError

    experiment = _experiment(folder, robust)
    prepared = {size: experiment.task.prepare(size, experiment.recipe, False) for size in experiment.task.sizes}
    claim_folder(experiment, out, prepared)
    outcomes = []
    for run in make_runs(experiment, out):
        outcome = run_one(run)
        if isinstance(outcome, Failure):
            raise PointsetError(outcome.reason)
        outcomes.append(outcome)
    found = gather(experiment, out, outcomes)
    save(found)
    tables = [(out / name).read_text(encoding="utf-8") for name in ("results.csv", "robustness.csv", "table.md")]
    return {"tables": tables, "pairs": repr(found.pairs), "costs": repr(found.costs)}


def go_on_training(run: Path, folder: Path) -> Any:
    """A training begun or gone on with."""
    import pointset
    from pointset.training.recipe import Recipe

    model = pointset.create_model("isab4-pma", classes=2, dim=8)
    train = pointset.load_dataset(folder / "data", "train", POINTS, progress=False)
    recipe = Recipe(epochs=3, batch_size=8, validation=0.25, patience=3, device="cpu")
    return pointset.fit(model, train, recipe, run=run, progress=False)


def _train(folder: Path) -> None:
    """A training, and what it would have left if it had been stopped after the second epoch."""
    from pointset.training.checkpoints import RunFolder

    save = RunFolder.save

    def save_and_copy(self: RunFolder, checkpoint: Any) -> None:
        save(self, checkpoint)
        if checkpoint.epoch == 2:
            shutil.copytree(self.path, folder / "stopped")

    RunFolder.save = save_and_copy  # type: ignore[method-assign]
    try:
        go_on_training(folder / "finished", folder)
    finally:
        RunFolder.save = save  # type: ignore[method-assign]


def _half_a_pool(folder: Path) -> None:
    """The test split's pool as a build that was stopped at its last shape leaves it."""
    from pointset.data.catalogue.folders import list_folder
    from pointset.data.pools.partial import PartialPool
    from pointset.data.pools.plan import Plan, Sampling
    from pointset.data.pools.shapes import make_shape

    plan = Plan.of("half", list_folder(folder / "data", "test"), Sampling(POINTS, normals=True))
    plan.folder.parent.mkdir(parents=True, exist_ok=True)
    partial = PartialPool(plan)
    for job in list(enumerate(plan.shapes))[:-1]:
        partial.write(make_shape(job, plan.sampling))
