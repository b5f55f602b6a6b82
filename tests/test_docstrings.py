"""Docstrings of public names have their sections and examples that run; and how objects are shown in a session."""

import ast
import doctest
import inspect
import re
import textwrap

import numpy as np
import pytest
from matplotlib import pyplot
from reference_pages import PREAMBLE, all_names, public

import pointset
from pointset.nn import registry

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


def test_every_public_name_stands_on_one_page():
    here = {name.removeprefix("pointset.") for name in NAMES if name.count(".") == 1}
    rooms = {name for name in pointset.__all__ if inspect.ismodule(getattr(pointset, name))}
    assert set(pointset.__all__) - {"__version__"} - rooms == here
    objects = [id(public(name)) for name in NAMES]
    assert len(set(objects)) == len(objects)
    for room in (pointset.data, pointset.nn, pointset.viz, pointset.evaluation, pointset.tasks):
        assert [name for name in room.__all__ if id(getattr(room, name)) not in objects] == [], room.__name__


@pytest.mark.parametrize("name", [name for name in NAMES if ">>> " in (inspect.getdoc(public(name)) or "")])
def test_the_example_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "REGISTERED", registry.REGISTERED.copy())
    pyplot.switch_backend("agg")
    known = {}
    exec(PRESENT, known)
    examples = doctest.DocTestParser().get_doctest(inspect.getdoc(public(name)), known, name, None, None)
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples, out=said.append)
    pyplot.close("all")
    assert not said, "".join(said)


def test_what_is_echoed_is_a_line_that_says_what_it_is():
    clouds = np.random.default_rng(0).normal(size=(5, 8, 3))
    sets = pointset.from_arrays(clouds, [0, 1, 0, 0, 1], classes=["a <b>", "c"])
    model = pointset.create_model("isab4-pma", classes=2, dim=8)
    maps = pointset.attention_maps(model, sets[0][0])
    for shown, *words in (
        (sets, "5 shapes of 2 classes", "8 points each"),
        (model, "isab4-pma", "2 classes"),
        (maps[0], "encoder.0.reads", "4 heads, 4 queries, 8 keys; keys are points"),
        (pointset.attention_maps(model, sets.points)[0], "5 clouds"),
        (pointset.evaluate(model, sets), "5 shapes of 2 classes"),
        (pointset.fit(model, sets, pointset.Recipe(epochs=1), progress=False), "Fitted", "1 epoch"),
        (pointset.to_plain_data(model), "isab4-pma", "kB"),
        (pointset.check_symmetry(model, sizes=(1, 2)), "invariant", "padding"),
        (pointset.viz.make_page(maps, sets[0][0]), "Page"),
    ):
        assert all(word in repr(shown) for word in words)
        assert len(repr(shown)) < 200
        assert "\n" not in repr(shown)


@pytest.mark.slow
def test_comparisons_say_what_they_are(reported):
    assert ": 8 runs finished, 4 failed; in " in repr(reported)
    assert "3 models on " in repr(reported.experiment)
    shown = reported._repr_html_()
    assert "ISAB &amp; PMA &lt;4&gt;" in shown
    assert shown.count("<tr>") == 1 + len(reported.rows)
