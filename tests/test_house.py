"""The package as a whole: which room may import which, docstrings, the wheel, names, and what a process loads."""

import ast
import importlib
import json
import os
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from pointset.data.catalogue.cards import list_cards, load_card
from pointset.tasks.experiments import TASKS

CHECKOUT = Path(__file__).parent.parent


def test_packages_import_only_lower_ones_without_circles() -> None:
    """By `tool.importlinter` of pyproject.toml."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    found = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def run(*command: str | Path, cwd: Path) -> str:
    """Standard output of a command that must succeed, away from this process's Python settings."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from the source archive of the checkout, so that both are tested to be complete."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, CHECKOUT, cwd=folder)
    return next(folder.glob("pointset_learn-*.whl"))


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_cards_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"pointset/cards/{name}.toml" for name in list_cards()} <= names
    assert {f"pointset/tasks/experiments/{name}.toml" for name in ["quick", "own", *[*TASKS][1:]]} <= names
    assert {"pointset/py.typed", "pointset/__init__.pyi", "pointset/cards/README.md"} <= names
    modules = {path.relative_to(CHECKOUT).as_posix() for path in (CHECKOUT / "pointset").rglob("*.py")}
    assert {name for name in names if name.endswith(".py")} == modules
    assert {name.split("/")[0] for name in names} == {"pointset", f"{'-'.join(wheel.name.split('-')[:2])}.dist-info"}


@pytest.mark.slow
def test_the_wheel_works_in_an_empty_environment_away_from_the_checkout(wheel: Path, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    python = environment / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, cwd=tmp_path)
    # The dependencies are those of the running environment: a path in a .pth file shows its packages, and not the
    # editable pointset, which is a .pth file itself.
    site = Path(run(python, "-Ic", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip())
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    code = (
        "import json, pointset; from pointset.data.catalogue.cards import list_cards, load_card; "
        "print(json.dumps([pointset.__file__, {name: load_card(name).citation for name in list_cards()}]))"
    )
    file, cards = json.loads(run(python, "-Ic", code, cwd=tmp_path))
    assert Path(file).resolve().is_relative_to(environment.resolve())
    assert cards == {name: load_card(name).citation for name in list_cards()}
    listed = json.loads(run(environment / "bin" / "pointset", "data", "list", "--json", cwd=tmp_path))
    assert [card["name"] for card in listed] == list_cards()


# The name under which a distribution is imported, where it is another.
DISTRIBUTIONS = {"IPython": "ipython", "PIL": "pillow", "lazy_loader": "lazy-loader", "sklearn": "scikit-learn"}
DISTRIBUTIONS |= {"mapbox_earcut": "mapbox-earcut", "torch_geometric": "torch-geometric"}


def test_everything_that_is_imported_is_declared() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "test" for line in lines]
    declared = {re.split(r"[<>=!~;\[ ]", line)[0] for line in [*project["dependencies"], *extras]}
    imported = set()
    for path in (CHECKOUT / "pointset").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).split(".")[0])
    foreign = imported - set(sys.stdlib_module_names) - {"pointset"}
    assert {DISTRIBUTIONS.get(name, name) for name in foreign} <= declared


@pytest.mark.parametrize("package", ["pointset", "pointset.data", "pointset.viz", "pointset.tasks"])
def test_the_names_of_a_package_are_those_it_lists(package: str) -> None:
    module = importlib.import_module(package)
    for name in module.__all__:
        assert getattr(module, name).__name__.rpartition(".")[2] == name
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="read_meshes"):
        module.read_meshes  # noqa: B018


SLOW = ("open3d", "plotly", "trimesh", "torch_geometric", "matplotlib", "pandas", "scipy", "sklearn", "torch._dynamo")
HEAVY = (*SLOW, "h5py", "joblib")
TRAINING = """import pointset
pairs = [[[0.0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]]]
sets = pointset.from_arrays(pairs * 4, [0, 1] * 4)
for optimizer in ("adam", "adamw", "sgd", "muon"):
    model = pointset.create_model("rff-max", classes=2, dim=16)
    pointset.fit(model, sets, pointset.Recipe(epochs=2, optimizer=optimizer), progress=False)
    pointset.evaluate(model, sets).summary()"""


PROGRAMS = {
    "the package and its command line": (
        "import pointset, pointset.data, pointset.cli\n"
        "from pointset.data import read_mesh, Mesh, MeshError, sample_points, list_cards",
        (*HEAVY, "torch"),
    ),
    "lists and verdicts": (
        "import pointset; from pointset.cli import main\n"
        "pointset.judge({'item': [0, 1], 'label': [3, 5], 'prediction': ['3', '4']})\n"
        "main(['zoo', '--pretrained']); main(['zoo', 'rff-pma4.modelnet40-1024'])",
        ("torch",),
    ),
    "every room": ("import pointset\npointset.viz, pointset.tasks, pointset.nn, pointset.create_model", HEAVY),
    "a training, and what a comparison runs": (
        f"import pointset.comparison.comparing, pointset.tasks\n{TRAINING}",
        SLOW,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("program", "absent"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_process_loads_nothing_slow_before_it_needs_it(program: str, absent: tuple[str, ...]) -> None:
    """Each would delay every command and worker by seconds."""
    code = f"{program}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "pointset" in loaded
    assert not set(absent) & set(loaded)
