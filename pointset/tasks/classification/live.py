"""The live page of a report: the best classifiers run in the page, on test shapes that they classify differently."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from pointset.comparison.report.sections import Section
from pointset.comparison.results import Results
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.export.javascript import PlainModel, describe_plainly
from pointset.tasks.classification.mistakes import BEST, class_name, coordinates, shapes_of
from pointset.tasks.classification.predictions import predictions_of
from pointset.training.loading import load_run
from pointset.viz.camera import Camera, to_unit
from pointset.viz.html_page import HtmlPage
from pointset.viz.live import make_live_page

MOST_SHAPES = 8
TITLE = "Ask the models"
TEXT = (
    "A page that runs {models} (first seed) in the browser, without a network: turn a shape, remove points or open "
    "your own file. It starts with test shapes{differ}. Saved beside this report, {megabytes:.1f} MB."
)


def live_page(results: Results, test_sets: Callable[[], PointSets]) -> Iterator[Section]:
    """The section with the live page; its text names each model that cannot run in a page, and why."""
    labels, sentences = results.best(BEST), []
    plain: dict[str, PlainModel] = {}
    for label in labels:
        try:
            described = describe_plainly(*load_run(results.first(label)))
            plain[label] = replace(described, tree={**described.tree, "name": label})
        except PointsetError as error:
            sentences.append(f"{label} is not included: {error}.")
    shapes, differ = _shapes(results, labels, test_sets)
    while plain:
        try:
            page = make_live_page([*plain.values()], shapes, title=TITLE, camera=Camera())
        except PointsetError as error:
            label, _ = plain.popitem()
            sentences.append(f"{label} is not included: {error}.")
        else:
            yield Section(TITLE, " ".join([_about(page, [*plain], differ), *sentences]), name="live", page=page)
            return
    yield Section(TITLE, " ".join(["No live page could be made for these models:", *sentences]))


def _about(page: HtmlPage, labels: list[str], differ: bool) -> str:
    megabytes = len(page.html.encode()) / 1e6
    about = " on which these models differ" if differ and len(labels) > 1 else ""
    return TEXT.format(models=" and ".join(labels), differ=about, megabytes=megabytes)


def _shapes(results: Results, labels: list[str], test_sets: Callable[[], PointSets]) -> tuple[dict[str, Any], bool]:
    """Upright test shapes of several classes by name, and whether the models predict different classes for them."""
    runs = [predictions_of(results.first(label)) for label in labels]
    if (sets := shapes_of(runs, test_sets)) is None:
        return {}, False
    differ = np.flatnonzero(np.ptp([run.predictions for run in runs], axis=0)).tolist()
    by_class: dict[int, int] = {}
    for shape in differ or range(len(sets)):
        by_class.setdefault(int(sets.labels[shape]), shape)
    chosen = [*by_class.values()][:MOST_SHAPES]
    named = {f"{class_name(sets, int(sets.labels[shape]))}: {sets.names[shape]}": shape for shape in chosen}
    return {name: to_unit(coordinates(sets, shape), sets.up) for name, shape in named.items()}, bool(differ)
