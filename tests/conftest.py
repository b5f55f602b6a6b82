"""Shared by all tests: run-time checks of shape annotations, and the location of the real data."""

import json
import os
import shutil
import subprocess

# Tiny models gain nothing from a second thread, and on a busy machine two that wait for each other lose minutes. Set
# before torch is imported, here and in the processes and notebooks that the tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")


from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from jaxtyping import config, install_import_hook
from numpy.typing import NDArray

# Shape annotations are checked here and nowhere else: at run time they would cost 20 us a call.
TYPED = (
    "pointset.nn",
    "pointset.tasks.clustering",
    "pointset.tasks.mixtures",
    "pointset.zoo.classifiers",
    "pointset.zoo.models",
)
install_import_hook(TYPED, "beartype.beartype")


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Switches off the shape checks: they cannot be compiled, and they would raise before the package's own checks."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


CHECKOUT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ModelNet data, when this machine has one."""
    folder = Path(os.environ.get("POINTSET_TEST_DATA", CHECKOUT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set POINTSET_TEST_DATA to a folder that has it")
    return folder


CLASSES = ("ball", "box", "rod")


def clouds(label: int, count: int, points: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Points on balls, boxes or rods of random proportions."""
    X = rng.normal(size=(count, points, 3))
    X /= np.linalg.norm(X, axis=2, keepdims=True) if label == 0 else np.abs(X).max(axis=2, keepdims=True)
    stretch = rng.uniform(0.6, 1.4, size=(count, 1, 3))
    if label == 2:
        stretch[..., :2] *= 0.2
    return (X * stretch).astype(np.float32)


@pytest.fixture(scope="session")
def clouds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small dataset in the layout of ModelNet40's HDF5 release: 3 classes, 40 + 20 shapes each, 64 points."""
    folder = tmp_path_factory.mktemp("clouds")
    rng = np.random.default_rng(0)
    (folder / "shape_names.txt").write_text("\n".join(CLASSES) + "\n")
    for split, count in (("train", 40), ("test", 20)):
        points = np.concatenate([clouds(label, count, 64, rng) for label in range(3)])
        labels = np.repeat(np.arange(3, dtype=np.uint8), count)[:, None]
        (folder / f"{split}_files.txt").write_text(f"elsewhere/ply_data_{split}0.h5\n")
        with h5py.File(folder / f"ply_data_{split}0.h5", "w") as file:
            file["data"], file["label"] = points, labels
    return folder


@pytest.fixture(scope="session")
def classifiers(clouds_folder: Path) -> Any:
    """Makes an experiment of small classifiers, one epoch each."""
    from pointset.comparison.experiment import Entry, Experiment
    from pointset.tasks.classification.task import Classification
    from pointset.training.recipe import Recipe
    from pointset.zoo.options import ModelOptions

    def make(*models: Any, **changes: Any) -> Experiment:
        experiment = Experiment(
            models=tuple(Entry.of(model) for model in models or ("rff-max", "isab4-pma")),
            task=Classification(data=str(clouds_folder), points=(24,)),
            seeds=(0,),
            model=ModelOptions(dim=16),
            recipe=Recipe(epochs=1, batch_size=16),
        )
        return experiment.changed(**changes)

    return make


@pytest.fixture(scope="session")
def reported(clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A finished comparison with its report: two models, two sizes, two seeds, and a third model that fails."""
    from pointset.comparison.comparing import run_experiment
    from pointset.comparison.experiment import Entry, Experiment
    from pointset.comparison.metric import Published
    from pointset.runs.workers import Workers
    from pointset.tasks.classification.task import Classification
    from pointset.training.recipe import Recipe
    from pointset.zoo.options import ModelOptions

    experiment = Experiment(
        title="Two <b>models</b>",
        models=(
            Entry("rff-max"),
            Entry("isab4-pma", {"temperature": 1e-60}, "too cold"),
            Entry("isab4-pma", {}, "ISAB & PMA <4>"),  # HTML has to escape it
        ),
        task=Classification(data=str(clouds_folder), points=(24, 12), robustness_seeds=(0,)),
        seeds=(0, 3),
        model=ModelOptions(dim=16),
        recipe=Recipe(epochs=3, batch_size=16, validation=0.2),
        published={"rff-max": {24: Published(0.5, 0.02, 5)}},
    )
    return run_experiment(experiment, tmp_path_factory.mktemp("reported"), Workers(1), progress=False)


@pytest.fixture(scope="session")
def in_node() -> Callable[..., Any]:
    """Call what a module of the pages exports, in node: `in_node("camera", "new Camera(given).axes()", given)`."""
    from pointset.viz.html_page import WEB

    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")

    def run(module: str, expression: str, given: Any = None) -> Any:
        program = f"""import * as module from {json.dumps((Path(str(WEB)) / f"{module}.mjs").as_uri())};
            import {{ readFileSync }} from "node:fs";
            Object.assign(globalThis, module, {{ given: JSON.parse(readFileSync(0, "utf8")) }});
            console.log(JSON.stringify({expression}));"""
        command = [node, "--input-type=module", "-e", program]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
