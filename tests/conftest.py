"""Shared by all tests: checks of shape annotations, what may be skipped, toy data, real data, node and a browser."""

import json
import os
import random
import re
import shutil
import subprocess

# Tiny models gain nothing from a second thread, and on a busy machine two that wait for each other lose minutes. Set
# before torch is imported, here and in the processes and notebooks that the tests start.
os.environ.setdefault("OMP_NUM_THREADS", "1")


from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import config, install_import_hook

# Shape annotations are checked here and nowhere else: at run time they would cost 20 us a call.
TYPED = ("pointset.nn", "pointset.tasks.clustering", "pointset.zoo.classifiers", "pointset.zoo.models")
install_import_hook(TYPED, "beartype.beartype")


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Seeds the global generators, which modules made without a seed draw from: no test depends on those before it.

    POINTSET_TEST_SEED is another seed, with which all tests must pass too.
    """
    seed = int(os.environ.get("POINTSET_TEST_SEED", "0"))
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002  the global generator is meant
    torch.manual_seed(seed)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Switches off the shape checks: they cannot be compiled, and they would raise before the package's own checks."""
    config.update("jaxtyping_disable", True)
    yield
    config.update("jaxtyping_disable", False)


CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAY_SKIP = re.compile(r"no GPU|/proc|no real data|is here|pyarrow|wandb")
"""Reasons for which a test may be skipped even in CI: what a machine has, and libraries that no extra installs."""


def not_tested(config: pytest.Config) -> Counter[str]:
    """The reasons for which tests, or whole files, were skipped, with the number of each."""
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")  # None in a process of xdist
    skipped = reporter.stats.get("skipped", []) if reporter else []
    return Counter(str(report.longrepr[-1]).removeprefix("Skipped: ") for report in skipped)


def refused(config: pytest.Config) -> list[str]:
    """The reasons that fail CI: it has node, Chromium and the libraries of the test extra."""
    return [reason for reason in not_tested(config) if os.environ.get("CI") and not MAY_SKIP.search(reason)]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where CI is set and skips what it could run."""
    if refused(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say in one line at the end what was not tested."""
    reasons = [f"{reason} ({count})" for reason, count in sorted(not_tested(config).items())]
    if left := len(terminalreporter.stats.get("deselected", [])):
        reasons.append(f"not chosen ({left})")
    terminalreporter.write_line(f"not tested: {'; '.join(reasons) or 'nothing'}")
    for reason in refused(config):
        terminalreporter.write_line(f"CI must test this, so the run fails: {reason}", red=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of `reported` first, so that few processes make it."""
    items.sort(key=lambda item: "reported" not in getattr(item, "fixturenames", ()))


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of real ModelNet data: POINTSET_TEST_DATA, or a folder shared/data beside the checkout."""
    beside = Path(__file__).parent.parent.parent / "shared" / "data"
    folder = Path(os.environ.get("POINTSET_TEST_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set POINTSET_TEST_DATA to a folder that has it")
    return folder


@pytest.fixture(scope="session")
def clouds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy dataset in the layout of ModelNet40's HDF5 release: 3 classes, 40 + 20 shapes each, 64 points."""
    from toy import write_clouds

    return write_clouds(tmp_path_factory.mktemp("clouds"))


@pytest.fixture(scope="session")
def train(clouds_folder: Path) -> Any:
    """The toy training shapes, in sets of 32 points."""
    import pointset

    return pointset.load_dataset(clouds_folder, "train", 32)


@pytest.fixture(scope="session")
def classifiers(clouds_folder: Path) -> Any:
    """Makes an experiment of small classifiers, one epoch each."""
    from pointset.comparison.experiment import Experiment
    from pointset.tasks.classification import Classification
    from pointset.training.recipe import Recipe
    from pointset.zoo.options import ModelOptions

    def make(*models: Any, **changes: Any) -> Experiment:
        experiment = Experiment.of(
            changes.pop("task", Classification(data=str(clouds_folder), points=(24,)).task),
            models or ("rff-max", "isab4-pma"),
            published=changes.pop("published", None),
            seeds=(0,),
            model=ModelOptions(dim=16),
            recipe=Recipe(epochs=1, batch_size=16),
        )
        return experiment.changed(**changes)

    return make


@pytest.fixture(scope="session")
def done(classifiers: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A finished comparison without a report: two models, two seeds, two epochs."""
    from toy import compare

    from pointset.training.recipe import Recipe

    experiment = classifiers("isab4-pma", "rff-max", seeds=(0, 1), recipe=Recipe(epochs=2, batch_size=16))
    return compare(experiment, tmp_path_factory.mktemp("done"))


@pytest.fixture(scope="session")
def reported(classifiers: Any, clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A finished comparison with its report: two models, two sizes, two seeds, and a third model that fails."""
    from toy import compare

    from pointset.comparison.metric import Published
    from pointset.tasks.classification import Classification
    from pointset.training.recipe import Recipe

    experiment = classifiers(
        "rff-max",
        {"name": "isab4-pma", "temperature": 1e-60, "label": "too cold"},
        {"name": "isab4-pma", "label": "ISAB & PMA <4>"},  # HTML has to escape it
        title="Two <b>models</b>",
        task=Classification(data=str(clouds_folder), points=(24, 12), robustness_seeds=(0,)).task,
        seeds=(0, 3),
        recipe=Recipe(epochs=3, batch_size=16, validation=0.2),
        published={"rff-max": {24: Published(0.5, 0.02, 5)}},
    )
    return compare(experiment, tmp_path_factory.mktemp("reported"), report=True)


@pytest.fixture(scope="session")
def in_node() -> Callable[..., Any]:
    """Call what a module of a page exports, in node: `in_node(WEB / "camera.mjs", "new Camera(given)", given)`."""

    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")

    def run(module: Path, expression: str, given: Any = None) -> Any:
        program = f"""import * as module from {json.dumps(module.as_uri())};
            import {{ readFileSync }} from "node:fs";
            Object.assign(globalThis, module, {{ given: JSON.parse(readFileSync(0, "utf8")) }});
            console.log(JSON.stringify({expression}));"""
        command = [node, "--input-type=module", "-e", program]
        done = subprocess.run(command, input=json.dumps(given), capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A headless Chromium with software WebGL: that of the system, or the one downloaded by playwright."""
    playwright = pytest.importorskip("playwright.sync_api", reason="not installed: pip install playwright")
    with playwright.sync_playwright() as driver:
        own = driver.chromium.executable_path
        path = next((found for name in CHROMIUM if (found := shutil.which(name))), own if Path(own).exists() else None)
        if path is None:
            pytest.skip("no Chromium here: install one (apt-get install chromium, or playwright install chromium)")
        options = ["--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
        try:
            started = driver.chromium.launch(executable_path=path, args=options)
        except playwright.Error as error:  # a stub of a package that is not there, or libraries that it lacks
            pytest.skip(f"{path} does not start: {str(error).splitlines()[0]}")
        page = started.new_page()
        if not page.evaluate("document.createElement('canvas').getContext('webgl') !== null"):
            pytest.skip(f"{path} has no WebGL here, not even on the processor")
        page.close()
        yield started
        started.close()
