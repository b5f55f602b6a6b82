"""The pages of the API reference: which public name stands where."""

import importlib
import inspect
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PREAMBLE = """\
from pathlib import Path

import numpy as np
import torch

import pointset

rng = np.random.default_rng(0)
X = rng.normal(size=(24, 32, 3))
X[::2, :, 2] *= 0.1  # flat shapes and round ones in turn
y = ["flat", "round"] * 12
train = pointset.from_arrays(X[:16], y[:16])
test = pointset.from_arrays(X[16:], y[16:], split="test")
model = pointset.create_model("isab4-pma", classes=2, dim=16).eval()
points = test.points[0]
maps = pointset.attention_maps(model, points)
pools = pointset.find_map(maps, kind="pools")
"""
"""What the examples of all docstrings begin with."""

INDEX = """\
Reference
=========

Letters: B sets side by side, of n points each, of d numbers each; a mask is True at real points. Coordinates are in the
units of their file until they are normalised, which models expect. What the user can put right is a
:py:obj:`PointsetError <pointset.PointsetError>`.

.. toctree::
   :maxdepth: 1

{listed}

The examples run, as tests do, in an empty folder and behind these lines:

.. code-block:: python

{preamble}
"""


@dataclass(frozen=True)
class Page:
    """One page of the reference."""

    title: str
    text: str
    names: tuple[str, ...]
    """Public names in the order of the page; behind them come the others of `rooms`."""
    rooms: tuple[str, ...] = ()
    """Modules all of whose public names stand here, but for those that `pointset` has too."""
    modules: tuple[str, ...] = ()
    """Modules with whose words the page opens."""


PAGES = {
    "data": Page(
        "Data",
        "From mesh files, folders and arrays to batches of point sets.",
        (
            "pointset.load_dataset",
            "pointset.check_data",
            "pointset.from_arrays",
            "pointset.PointSets",
            "pointset.DataOptions",
        ),
        ("pointset.data",),
    ),
    "models": Page(
        "Models",
        "Classifiers by name, those that come trained, and parts of one's own.",
        (
            "pointset.create_model",
            "pointset.ModelOptions",
            "pointset.list_models",
            "pointset.list_pretrained",
            "pointset.register_pooling",
            "pointset.register_encoder",
            "pointset.register_weights",
        ),
    ),
    "layers": Page(
        "Layers",
        "The blocks of the models, as plain torch modules.",
        (),
        ("pointset.nn",),
        ("pointset.nn.blocks",),
    ),
    "training": Page(
        "Training",
        "One explicit loop, its recipe, what it leaves, and an estimator for scikit-learn's tools.",
        (
            "pointset.fit",
            "pointset.fit_automatic",
            "pointset.Recipe",
            "pointset.Fitted",
            "pointset.load_run",
            "pointset.pack_run",
            "pointset.PointSetClassifier",
            "pointset.PointSetEmbedding",
        ),
    ),
    "evaluation": Page(
        "Evaluation",
        "Accuracy, calibration, robustness, and whether a model is a function of sets at all.",
        (
            "pointset.evaluate",
            "pointset.Evaluation",
            "pointset.corrupt",
            "pointset.check_symmetry",
            "pointset.embed",
            "pointset.find_similar",
            "pointset.guess_up",
            "pointset.evaluation.symmetry.Symmetry",
        ),
        ("pointset.evaluation",),
    ),
    "attention": Page(
        "Attention as data",
        "What a model reads, and whether its prediction depends on that.",
        (
            "pointset.inspect_shape",
            "pointset.attention_maps",
            "pointset.AttentionMap",
            "pointset.find_map",
            "pointset.explain.importance.rollout",
            "pointset.explain.importance.critical_points",
            "pointset.explain.importance.occlusion_influence",
            "pointset.explain.specialisation.specialisation",
            "pointset.explain.specialisation.Specialisation",
            "pointset.explain.specialisation.untrained",
        ),
    ),
    "pictures": Page(
        "Pictures", "Of clouds and of attention: stills, pages, 3D files.", (), ("pointset.viz",), ("pointset.viz",)
    ),
    "comparison": Page(
        "Comparisons",
        "An experiment becomes runs, and these become statistics, tables and a report.",
        (
            "pointset.compare",
            "pointset.read_experiment",
            "pointset.run_experiment",
            "pointset.Comparison",
            "pointset.judge",
            "pointset.Verdict",
            "pointset.comparison.experiment.Experiment",
            "pointset.comparison.experiment.Entry",
            "pointset.comparison.metric.Published",
        ),
        modules=("pointset.comparison.experiment",),
    ),
    "tasks": Page("Tasks", "Set problems that need no meshes.", (), ("pointset.tasks",), ("pointset.tasks",)),
    "export": Page(
        "Export",
        "Trained models as files that other programs read.",
        (
            "pointset.export_model",
            "pointset.to_plain_data",
            "pointset.PlainModel",
            "pointset.Agreement",
        ),
    ),
    "errors": Page("Errors", "What the user can put right is one family.", ("pointset.PointsetError",)),
}


def public(name: str) -> Any:
    """The object behind a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def names_of(page: Page) -> list[str]:
    """The public names of a page."""
    ours = importlib.import_module("pointset")
    top = {id(getattr(ours, name)) for name in ours.__all__}
    others = [f"{room}.{name}" for room in page.rooms for name in importlib.import_module(room).__all__]
    return [*page.names, *(name for name in others if id(public(name)) not in top and name not in page.names)]


def all_names() -> list[str]:
    """Every public name of the reference."""
    return [name for page in PAGES.values() for name in names_of(page)]


def directive(name: str) -> str:
    """What asks autodoc for a name."""
    if inspect.isclass(public(name)):
        return f".. autoclass:: {name}\n   :members:\n"
    if callable(public(name)):
        return f".. autofunction:: {name}\n"
    return f".. autodata:: {name}\n"


def write_reference(folder: Path) -> None:
    """Write the pages of the reference and their list into `folder`."""
    folder.mkdir()
    for key, page in PAGES.items():
        opening = [f".. automodule:: {module}\n" for module in page.modules]
        parts = [page.title, "=" * len(page.title), "", page.text, "", *opening, *map(directive, names_of(page))]
        (folder / f"{key}.rst").write_text("\n".join(parts), encoding="utf-8")
    listed = textwrap.indent("\n".join([*PAGES, "commands"]), "   ")
    (folder / "index.rst").write_text(
        INDEX.format(listed=listed, preamble=textwrap.indent(PREAMBLE, "   ")), encoding="utf-8"
    )
