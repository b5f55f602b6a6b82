"""The checkout as a whole: imports, the wheel, public names and their examples, scripts, and the page of results."""

import ast
import doctest
import importlib
import inspect
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import textwrap
import tomllib
import venv
import zipfile
from pathlib import Path

import fuzz
import numpy as np
import page
import pytest
import torch
from blocks import app
from matplotlib import pyplot
from reference_pages import PREAMBLE, all_names, packages, public
from rivals import fused, rewritten, split_along_batch
from saved import FOLDER, read_all
from sections import SECTIONS

import pointset
from pointset import create_model
from pointset.data.catalogue.cards import list_cards, load_card
from pointset.nn import registry
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
DISTRIBUTIONS |= {"collada": "pycollada", "lzf": "python-neo-lzf"}


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
    "lists and rankings": (
        "import pointset; from pointset.cli import main\n"
        "pointset.rank({'item': [0, 1], 'label': [3, 5], 'prediction': ['3', '4']})\n"
        "main(['zoo', '--pretrained']); main(['zoo', 'rff-pma4.modelnet40-1024'])",
        ("torch",),
    ),
    "every room": ("import pointset\npointset.viz, pointset.tasks, pointset.nn, pointset.create_model", HEAVY),
    "a training and a comparison": (f"import pointset.comparison.comparing, pointset.tasks\n{TRAINING}", SLOW),
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


SCRIPTS = sorted((CHECKOUT / "scripts").glob("*.sh"))
MODULES = sorted(path for path in (CHECKOUT / "scripts").rglob("[a-z]*.py") if path.stem != "conf")


PRIVATE = {
    # writes the help pages of the site
    "build.py": {"pointset.commands.app"},
    # write files of the package: the list of all models, and the statistics of a trained model
    "zoo_listing.py": {"pointset.commands.zoo", "pointset.zoo.abilities"},
    "out_of_distribution.py": {"pointset.zoo.out_of_distribution"},
    # trains with a loss of the points of a batch, not of its logits and labels alone
    "distil.py": {
        "pointset.training.checkpoints",
        "pointset.training.loop",
        "pointset.training.objectives",
        "pointset.zoo.local_feature_inputs",
    },
    # selects among candidates without the pretrained networks, which have seen the shapes
    "groups.py": {"pointset.training.selection"},
}
"""Modules that programs import although they are not public, with the reason."""
PAGES = sorted(path for folder in ("scripts", "notebooks", "datasets") for path in (CHECKOUT / folder).rglob("*.*"))
PAGES = [path for path in [CHECKOUT / "README.md", *PAGES] if path.suffix in (".py", ".md", ".ipynb")]


def code_of(page: Path) -> str:
    """The Python code of a program, a guide or a page."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".md":
        return "\n".join(map(textwrap.dedent, re.findall(r"```python\n(.*?)```", text, re.DOTALL)))
    if page.suffix == ".py":
        return text
    cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return "\n".join(re.sub(r"(?m)^[%!].*", "", cell) for cell in cells if not cell.startswith("%%"))


def private_modules(page: Path) -> set[str]:
    """The modules of the package that a page imports, or imports from, without being public."""
    names = {name: {*getattr(module, "__all__", ())} for name, module in packages().items()}
    names["pointset.cli"] = {"main"}
    found = set()
    for node in ast.walk(ast.parse(code_of(page))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("pointset.")} - {*names}
        elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("pointset."):
            known = names.get(node.module)
            imported = {alias.name for alias in node.names}
            found |= {node.module} if known is None else {f"{node.module}.{name}" for name in imported - known}
    return found


def test_programs_guides_and_pages_import_public_names_alone() -> None:
    found = {page.relative_to(CHECKOUT).as_posix(): private_modules(page) for page in PAGES}
    assert len(found) > 100
    assert {Path(page).name: modules for page, modules in found.items() if modules} == PRIVATE


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """scripts/, pyproject.toml, and programs that log their calls to `calls`; uv fails."""
    shutil.copytree(CHECKOUT / "scripts", tmp_path / "scripts")
    shutil.copy(CHECKOUT / "pyproject.toml", tmp_path)
    for name, status in ((".venv/bin/python", 0), (".venv/bin/pointset", 0), ("bin/uv", 1)):
        program = tmp_path / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{program.name} $*" >> "{tmp_path}/calls"\nexit {status}\n')
        program.chmod(0o755)
    return tmp_path


def bash(copy: Path, *arguments: str, **environment: str) -> tuple[int, str, list[str]]:
    """Exit status, output and errors, and the logged calls of a script."""
    (copy / "calls").unlink(missing_ok=True)
    environment = {**os.environ, "PYTHON": "", "PATH": f"{copy / 'bin'}:{os.environ['PATH']}", **environment}
    outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(["bash", *arguments], cwd=copy.parent, env=environment, timeout=60, **outputs)
    calls = copy / "calls"
    return done.returncode, done.stdout, calls.read_text().splitlines() if calls.exists() else []


def installs(calls: list[str]) -> list[str]:
    return [call for call in calls if "-m pip install" in call]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_every_script_is_valid_shell(script):
    subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_program_can_be_imported(path):
    assert importlib.import_module(path.stem).__doc__


def test_quickstart_installs_once_and_passes_its_arguments_on(copy):
    script = str(copy / "scripts" / "quickstart.sh")
    status, printed, calls = bash(copy, script, "--epochs", "5")
    assert status == 0, printed
    (install,) = installs(calls)
    assert install.endswith("-c scripts/constraints.txt -e .")
    assert calls[-1] == "pointset compare --epochs 5"
    assert not installs(bash(copy, script)[2]), "the second time there is nothing to install"
    (copy / "pyproject.toml").write_text("# changed\n")
    assert installs(bash(copy, script)[2]), "until what decides it changes"


def test_extras_are_installed_by_name_and_are_enough_without_them(copy):
    script = str(copy / "scripts" / "setup.sh")
    (install,) = installs(bash(copy, script, "export,notebook")[2])
    assert install.endswith("-e .[export,notebook]")
    assert not installs(bash(copy, script)[2])


@pytest.mark.parametrize("script", ["quickstart.sh", "test.sh"])
def test_an_interpreter_that_is_not_there_is_named(script, copy):
    status, printed, calls = bash(copy, str(copy / "scripts" / script), PYTHON="/no/such/python")
    assert (status, calls) == (2, [])
    assert "PYTHON=/no/such/python does not run or is older than Python 3.11" in printed


@pytest.mark.parametrize("attend", [split_along_batch, fused])
@pytest.mark.parametrize("name", ["isab5-pma", "sab-pma"])
def test_other_implementations_with_our_weights_give_our_results(name, attend):
    ours = create_model(name, classes=3, dim=12, heads=3).double().eval()
    points = torch.randn(2, 71, 3, generator=torch.Generator().manual_seed(0), dtype=torch.double)
    theirs = rewritten(ours, attend).eval()
    torch.testing.assert_close(theirs(points), ours(points), rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_the_command_prints_a_table_and_keeps_the_rows(tmp_path, capsys):
    out = tmp_path / "bench.json"
    sizes = "--dims 16 --heads 2 --points 70 --batch-size 2 --rounds 1 --threads 1 --floor"
    app(["sab-pma", *sizes.split(), "--out", str(out)], result_action="return_value")
    assert "| sab-pma |" in capsys.readouterr().out
    kept = json.loads(out.read_text())
    assert [row["work"] for row in kept["rows"]] == ["training step", "inference"]
    for row in kept["rows"]:
        assert min(row[rival] for rival in ("released", "sdpa", "torch-geometric", "torch", "aggregation")) > 0
        assert 0 < row["share of product rate"] < 1
        assert 0 < row["products"] < 1
    assert kept["machine"]["threads"] == 1
    assert set(kept) == {"rows", "machine", "command"}


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("trimesh"), "disabled", True)


@pytest.mark.slow
@pytest.mark.parametrize("kind", fuzz.MESHES + fuzz.CLOUDS)
def test_damaged_files_are_refused_or_read_as_by_others(kind: str) -> None:
    counts = fuzz.check_kind(kind, 40, seed=0)
    assert counts["WRONG"] == counts["CRASH"] == 0
    assert counts["refused"] > 10


def test_the_page_and_its_figures_stand_as_the_saved_results_make_them():
    assert page.outdated(FOLDER) == [], "run scripts/experiments/page.py"


def test_every_saved_result_is_on_a_page_with_where_it_comes_from():
    pages = page.render(read_all())
    contents, text = pages["README.md"], "\n".join(pages.values())
    for name, one in read_all().items():
        assert f"(`{name}`)" in text
        assert f"```\n{one.about['command']}\n```\n\n{one.about['date']}, commit {one.about['commit']}" in text
        assert one.table in text or name in SECTIONS[0].names
        assert one.about["title"] in contents


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    subprocess.run([sys.executable, CHECKOUT / "scripts" / "docs" / "build.py", tmp_path], check=True)
    assert (tmp_path / "docs" / "notebooks" / "live.html").exists()


NAMES = all_names()
PRESENT = compile(PREAMBLE, "the preamble", "exec")


def tree_of(described: object) -> ast.FunctionDef | ast.ClassDef:
    plain = described if inspect.isclass(described) else inspect.unwrap(described)
    return ast.parse(textwrap.dedent(inspect.getsource(plain))).body[0]


def parameters_of(function: ast.FunctionDef) -> list[str]:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [one.arg for one in named if one.arg not in ("self", "cls")]


def are_named(names: list[str], text: str) -> list[str]:
    """The names that have no entry in the text."""
    entries = re.findall(r"^ +([\w, ]+):", text, re.M)
    known = {name.strip() for entry in entries for name in entry.split(",")}
    return [name for name in names if name not in known]


def lacking(described: object) -> list[str]:
    """The sections and entries that a docstring lacks."""
    text = inspect.getdoc(described) or ""
    if inspect.isclass(described) and issubclass(described, Exception):
        return []
    tree = tree_of(described)
    if isinstance(tree, ast.ClassDef):
        return fields_without_words(tree, text)
    missing = [f"Args: {name}" for name in are_named(parameters_of(tree), text)]
    # A picture, or the path that was given, needs no words.
    plain = tree.returns is None or ast.unparse(tree.returns) in ("None", "Picture", "Path")
    if not plain and "Returns:" not in text:
        missing.append("Returns")
    if any(isinstance(node, ast.Raise) for node in ast.walk(tree)) and "Raises:" not in text:
        missing.append("Raises")
    return missing


def fields_without_words(tree: ast.ClassDef, text: str) -> list[str]:
    """Undocumented fields, or parameters of the constructor if there is one."""
    made = next((node for node in tree.body if getattr(node, "name", "") == "__init__"), None)
    if made is not None:
        return [f"Args: {name}" for name in are_named(parameters_of(made), text)]
    described = set()
    for node, following in zip(tree.body, [*tree.body[1:], None], strict=True):
        if isinstance(node, ast.AnnAssign) and isinstance(following, ast.Expr):
            described.add(node.target.id)
    fields = [node for node in tree.body if isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node)]
    unsaid = [node.target.id for node in fields if node.target.id not in described]
    return [f"field {name}" for name in are_named(unsaid, text)]


@pytest.mark.parametrize("name", NAMES)
def test_a_public_name_says_what_it_takes_gives_and_raises(name):
    assert lacking(public(name)) == []


def test_every_public_object_stands_on_one_page():
    objects = [id(public(name)) for name in NAMES]
    assert len(set(objects)) == len(objects)
    for package, module in packages().items():
        assert module.__doc__, package
        values = [getattr(module, name) for name in getattr(module, "__all__", ())]
        assert {id(value) for value in values if inspect.isroutine(value)} <= {*objects}, package


@pytest.mark.parametrize("name", [name for name in NAMES if ">>> " in (inspect.getdoc(public(name)) or "")])
def test_the_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "REGISTERED", registry.REGISTERED.copy())
    pyplot.switch_backend("agg")
    known = {}
    exec(PRESENT, known)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(public(name)), known, name, None, None)
    said = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(examples, out=said.append)
    pyplot.close("all")
    assert not said, "".join(said)


def test_what_is_echoed_is_a_short_line_that_says_what_it_is():
    clouds = np.random.default_rng(0).normal(size=(5, 8, 3))
    sets = pointset.from_arrays(clouds, [0, 1, 0, 0, 1], classes=["a <b>", "c"])
    model = pointset.create_model("isab4-pma", classes=2, dim=8)
    maps, fitted = pointset.attention_maps(model, sets[0][0]), pointset.fit(model, sets, pointset.Recipe(epochs=1))
    found = (maps[0], fitted, pointset.evaluate(model, sets), pointset.check_symmetry(model, sizes=(1, 2)))
    page = pointset.viz.make_page(maps, sets[0][0])
    for shown in (sets, model, *found, page):
        assert re.fullmatch(r"\w.{10,200}", repr(shown)), repr(shown)
        assert not repr(shown).startswith(f"{type(shown).__name__}("), "it is no list of fields"
