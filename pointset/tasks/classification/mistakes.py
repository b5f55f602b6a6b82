"""Shapes in the report: the mistakes of the best classifiers, and a live page that runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pointset.comparison.report.sections import Section, Tile
from pointset.comparison.results import Results
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError
from pointset.evaluation import Evaluation
from pointset.evaluation.calibration import probabilities
from pointset.explain.critical_points import Pooled, pooled_from
from pointset.export.javascript import PlainModel, describe_plainly
from pointset.tasks.classification.predictions import predictions_of
from pointset.training.checkpoints import RunFolder
from pointset.training.loading import load_run
from pointset.viz.camera import Camera, to_unit
from pointset.viz.clouds import draw_looked_at, draw_tile
from pointset.viz.color import ColorScale, Scale, count_scale, scale_for
from pointset.viz.html_page import HtmlPage
from pointset.viz.live import make_live_page

MOST = 8
"""Maximum number of tiles in a section, and of shapes on the live page."""
BEST = 2
"""Number of models whose mistakes are shown, and that the live page runs."""
WORST_TEXT = (
    "The most frequent confusions of the best models (first seed), counted over both. Left: a misclassified shape; "
    "right: a shape of the predicted class. Colour: height."
)
WRONG_TEXT = (
    "The most confident mistakes of the first seed, one for each pair of classes. Left: the points that the model saw, "
    "coloured by height"
)
LIVE_TITLE = "Ask the models"
LIVE_TEXT = (
    "A page that runs {models} (first seed) in the browser, without a network: turn a shape, remove points or open "
    "your own file. It starts with test shapes{differ}. Saved beside this report, {megabytes:.1f} MB."
)


def shapes_of(runs: Iterable[Evaluation], test_sets: Callable[[], PointSets]) -> PointSets | None:
    """The test shapes of these predictions; None if they are not on this machine, or of another version of the data."""
    try:
        sets = test_sets()
    except PointsetError:
        return None
    return sets if all(run.labels.tolist() == sets.labels.tolist() for run in runs) else None


def mistakes(results: Results, test_sets: Callable[[], PointSets]) -> Iterator[Section]:
    """The sections with mistakes: none if the shapes are not available, and no gallery for an unsaved model."""
    runs = {label: predictions_of(results.first(label)) for label in results.best(BEST)}
    if (sets := shapes_of(runs.values(), test_sets)) is None:
        return
    if tiles := _worst(runs, sets):
        yield Section("The most frequent confusions", WORST_TEXT, name="worst-confusions", tiles=tiles)
    for number, (label, run) in enumerate(runs.items(), start=1):
        if (gallery := _gallery(results, label, run, sets)) is not None:
            text, tiles = gallery
            yield Section(f"Mistakes of {label}", text, name=f"mistakes-{number}", tiles=tiles)


def _worst(runs: Mapping[str, Evaluation], sets: PointSets) -> list[Tile]:
    total = sum(run.confusion for run in runs.values())
    assert isinstance(total, np.ndarray)
    total = total * ~np.eye(len(total), dtype=bool)
    tiles = []
    for cell in np.argsort(-total, axis=None, kind="stable")[:MOST].tolist():
        true, taken = divmod(cell, len(total))
        if total[true, taken] == 0:
            break
        mistaken = next(i for run in runs.values() for i in _where(run, true, taken))
        known = [i for run in runs.values() for i in _where(run, taken, taken)] or [
            *np.flatnonzero(sets.labels.numpy() == taken).tolist(),
            mistaken,
        ]
        picture = draw_tile([coordinates(sets, mistaken), coordinates(sets, known[0])], sets.up)
        of = int((sets.labels == true).sum())
        counts = [f"{label}: {run.confusion[true, taken]} of {of}" for label, run in runs.items()]
        tiles.append(
            Tile(picture, f"{class_name(sets, true)} predicted as {class_name(sets, taken)}", "; ".join(counts))
        )
    return tiles


def _where(run: Evaluation, true: int, taken: int) -> list[int]:
    return np.flatnonzero((run.labels == true) & (run.predictions == taken)).tolist()


def _gallery(results: Results, label: str, run: Evaluation, sets: PointSets) -> tuple[str, list[Tile]] | None:
    """Text and tiles of the most confident mistakes; None if there are none, or the model cannot be loaded."""
    chosen = _most_confident(run)
    folder = results.first(label)
    if not chosen or not RunFolder(folder).finished:
        return None
    try:
        model, _ = load_run(folder)
    except PointsetError:  # the model has a user-defined part that is not registered in this process
        return None
    influence = {shape: pooled_from(model, sets[shape][0]) for shape in chosen}
    scale = _scale(influence.values())
    shares = probabilities(run.logits)
    tiles = []
    for shape, pooled in influence.items():
        true, taken = int(run.labels[shape]), int(run.predictions[shape])
        cloud = coordinates(sets, shape)
        picture = (
            draw_tile([cloud], sets.up)
            if pooled is None or scale is None
            else draw_looked_at(cloud, pooled.values.numpy().astype(np.float64), scale, sets.up)
        )
        words = f"{100 * shares[shape, taken]:.0f} % {class_name(sets, taken)}, {100 * shares[shape, true]:.0f} % "
        words += f"{class_name(sets, true)}; shape {sets.names[shape]}"
        tiles.append(Tile(picture, f"{class_name(sets, true)} predicted as {class_name(sets, taken)}", words))
    return _text(scale), tiles


def _most_confident(run: Evaluation) -> list[int]:
    """Misclassified shapes in descending order of the predicted probability, one for each pair of classes."""
    shares = probabilities(run.logits).max(axis=1)
    first: dict[tuple[int, int], int] = {}
    for shape in np.argsort(-shares, kind="stable").tolist():
        if not run.right[shape]:
            first.setdefault((int(run.labels[shape]), int(run.predictions[shape])), shape)
    return [*first.values()][:MOST]


def _scale(pooled: Iterable[Pooled | None]) -> Scale | None:
    """One scale for all tiles of a model, so that they can be compared; None if there is nothing to colour."""
    known = [one for one in pooled if one is not None]
    if not known:
        return None
    values = np.concatenate([one.values.numpy().astype(np.float64) for one in known])
    return scale_for(values) if known[0].kind == "attention" else count_scale(values)


def _text(scale: Scale | None) -> str:
    if scale is None:
        return f"{WRONG_TEXT}; the pooling weights all points equally."
    if isinstance(scale, ColorScale):
        reach = f"{scale.reach:.0f}"
        return (
            f"{WRONG_TEXT}; right: attention of the pooling, mean over its heads and seeds, from grey (1/{reach} of "
            f"uniform attention, or less) to black ({reach} times uniform attention, or more)."
        )
    return (
        f"{WRONG_TEXT}; right: the points that max pooling selected; the darker a point, the more features it "
        "provides, and grey points could be removed."
    )


def coordinates(sets: PointSets, shape: int) -> NDArray[np.float64]:
    """The coordinates of a shape, as a model receives them."""
    return sets[shape][0][:, :3].numpy().astype(np.float64)


def class_name(sets: PointSets, label: int) -> str:
    """The name of a class, with spaces for underscores."""
    return sets.classes[label].replace("_", " ")


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
    shapes, differ = _live_shapes(results, labels, test_sets)
    while plain:
        try:
            page = make_live_page([*plain.values()], shapes, title=LIVE_TITLE, camera=Camera())
        except PointsetError as error:
            label, _ = plain.popitem()
            sentences.append(f"{label} is not included: {error}.")
        else:
            yield Section(
                LIVE_TITLE, " ".join([_about_page(page, [*plain], differ), *sentences]), name="live", page=page
            )
            return
    yield Section(LIVE_TITLE, " ".join(["No live page could be made for these models:", *sentences]))


def _about_page(page: HtmlPage, labels: list[str], differ: bool) -> str:
    megabytes = len(page.html.encode()) / 1e6
    about = " on which these models differ" if differ and len(labels) > 1 else ""
    return LIVE_TEXT.format(models=" and ".join(labels), differ=about, megabytes=megabytes)


def _live_shapes(
    results: Results, labels: list[str], test_sets: Callable[[], PointSets]
) -> tuple[dict[str, Any], bool]:
    """Upright test shapes of several classes by name, and whether the models predict different classes for them."""
    runs = [predictions_of(results.first(label)) for label in labels]
    if (sets := shapes_of(runs, test_sets)) is None:
        return {}, False
    differ = np.flatnonzero(np.ptp([run.predictions for run in runs], axis=0)).tolist()
    by_class: dict[int, int] = {}
    for shape in differ or range(len(sets)):
        by_class.setdefault(int(sets.labels[shape]), shape)
    chosen = [*by_class.values()][:MOST]
    named = {f"{class_name(sets, int(sets.labels[shape]))}: {sets.names[shape]}": shape for shape in chosen}
    return {name: to_unit(coordinates(sets, shape), sets.up) for name, shape in named.items()}, bool(differ)
