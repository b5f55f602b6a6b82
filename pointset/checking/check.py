"""Check a data set before anything is trained on it: `pointset data check`."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import KDTree

from pointset.baselines.features import invariant_part
from pointset.checking.labels import given_and_other, suspicious_labels
from pointset.checking.nearest import connected, nearest_elsewhere, resampled_distance
from pointset.checking.oddities import Oddity, odd_axes, odd_counts, odd_extents, odd_sizes
from pointset.checking.reading import Shapes, read_shapes
from pointset.data.axes import Axis, rotate_up, usual_up
from pointset.data.groups import Grouping, assign_folds, groups_from_names
from pointset.data.likeness.twins import Surface, fit_surfaces
from pointset.data.readers.formats import is_mesh_file, suffix_of
from pointset.data.readers.reading import read_mesh
from pointset.errors import counted
from pointset.runs.atomic import write_for_user
from pointset.runs.progress import followed
from pointset.runs.spreadsheets import as_csv
from pointset.training.baselines import FOLDS, baseline_of, extract_rows, fit_head, set_pose
from pointset.zoo.models import create_for

CANDIDATE = "features+surface-svm"
"""Whose held-out probabilities judge the labels."""
COMPARED = 6
"""Nearest shapes with which each shape is compared for twins."""
MARGIN = 1.4
"""How many times the distance of two samplings two rows of one shape may differ: few points make them uncertain."""
SAME_POINT = 2e-4
"""Largest distance of a point in two files of one shape, as a share of the extent: text may have four digits."""
NEARLY = 0.99
"""How sure a fit can be that two shapes are the same; more sure are the same points or bytes."""
UNREADABLE, LABEL, IDENTICAL = "unreadable", "label", "identical geometry"
ORDER = ("split", "classes", LABEL, "class", "odd")
"""Where suspects stand on the page: twins in train and test, twins in two classes, labels, twins, oddities."""


@dataclass(frozen=True)
class Suspect:
    """A shape that may be wrong, and why."""

    file: str
    true_class: str
    split: str
    kind: str
    """"unreadable", the kind of a twin, "label", or an oddity: "size", "points", "flat", "upward axis"."""
    note: str
    twin: str = ""
    """The shape that it is the same as, or for a label a shape of the class that it would be instead."""
    row: int = -1
    other: int = -1
    """Indices of the shape and its twin among the shapes that were read; -1 for none."""
    where: str = "odd"
    """One of `ORDER`."""
    sure: float = 0.0
    """From 0 to 1, comparable within a kind."""


@dataclass(frozen=True)
class Check:
    """What is suspicious about a data set."""

    shapes: Shapes
    suspects: tuple[Suspect, ...]
    """The most serious first."""
    grouping: Grouping
    compared: int
    """Pairs of shapes that were near enough to be fitted to each other."""
    same: int
    """Pairs of them that are the same."""
    agreed: float = 1.0
    """Share of the labels with which the classifier that judges them agrees."""

    @property
    def doubt(self) -> str:
        """How far suspicious labels are to be trusted, in words; empty if there is none."""
        judged = f"labels are judged by a classifier that agrees with {self.agreed:.0%} of them"
        return judged * bool(self.of(LABEL))

    @property
    def leaks(self) -> int:
        """Number of shapes that stand in another split too, or look as if they did: see their `kind`."""
        return len({each.file for each in self.suspects if each.where == "split"})

    @property
    def divided(self) -> int:
        """Number of shapes of other splits whose group has training shapes, too."""
        tested, groups = np.array(self.shapes.splits) != "train", self.grouping.groups
        return int((tested & np.isin(groups, groups[~tested])).sum())

    def of(self, where: str) -> list[Suspect]:
        """The suspects of one place of `ORDER`."""
        return [each for each in self.suspects if each.where == where]

    def save(self, path: str | Path) -> Path:
        """Write the suspects as a table (*.csv), which `without=` leaves out: delete the rows of shapes to keep."""
        columns = ("file", "true_class", "split", "kind", "twin", "note")
        rows = [{name: getattr(each, name) for name in columns} for each in self.suspects]
        text = as_csv(rows) if rows else ",".join(columns) + "\n"
        return write_for_user(Path(path), lambda temporary: temporary.write_text(text, encoding="utf-8"))


def check_data(
    data: str | Path, *, up: str | None = None, labels: str | None = None, seed: int = 0, progress: bool = True
) -> Check:
    """Read every shape of a card or a folder once, and find what may be wrong.

    Files that cannot be read; shapes that are the same, within a class, in two classes, or in train and test; shapes
    unlike their class in size, points or upward axis; and labels that are perhaps wrong, by confident learning on
    probabilities of a support vector machine that was fitted without the shape and its group.

    Args:
        data: name of a card, or a folder.
        up: the axis that points up in the files; None takes the card's, or the usual one of the file type.
        labels: a table of files and labels, see `DataOptions`.
        seed: of the folds.
        progress: show the progress.

    Returns:
        What is suspicious, the most serious first; its `save` writes a table for `without=`.

    Raises:
        PointsetError: the data is missing or in no known layout, or no file can be read.
    """
    shapes = read_shapes(data, up=up, labels=labels, progress=progress)
    work = _Work(shapes, seed, progress)
    twins = [*work.twins()]
    unread = [
        Suspect(name, shapes.classes[shapes.entries[name].label], "", UNREADABLE, reason, sure=1.0)
        for name, reason in shapes.failures.items()
    ]
    suspects = [*unread, *twins, *work.labels(twins), *work.oddities()]
    suspects.sort(key=lambda each: (ORDER.index(each.where), -each.sure))
    return Check(shapes, tuple(suspects), work.grouping, len(work.candidates), work.same, work.agreed)


class _Work:
    """Rows and candidates of one check."""

    def __init__(self, shapes: Shapes, seed: int, progress: bool) -> None:
        self.shapes, self.seed, self.progress, self.same, self.agreed = shapes, seed, progress, 0, 1.0
        self.model = create_for(shapes.sets[0], CANDIDATE)
        baseline = baseline_of(self.model)
        assert baseline is not None
        self.baseline = baseline
        set_pose(baseline, shapes.sets[0])
        each = [extract_rows(baseline, sets, progress) for sets in shapes.sets]
        self.blocks = [torch.cat(blocks) for blocks in zip(*each, strict=True)]
        self.rows = invariant_part(self.blocks[0][:, 0], self.blocks[1][:, 0]).numpy()
        self.grouping = groups_from_names(shapes.names, shapes.labels.tolist())
        alone = np.arange(len(shapes.names))
        near = nearest_elsewhere(self.rows, np.zeros_like(alone), alone, COMPARED)
        self.limit = MARGIN * resampled_distance(shapes.sets[0])
        self.candidates = sorted(
            {
                (min(row, other), max(row, other))
                for row in alone.tolist()
                for other in near[row].tolist()
                if other >= 0 and np.linalg.norm(self.rows[row] - self.rows[other]) <= self.limit
            }
            | {*self._same_bytes()}
        )

    @cache  # noqa: B019 - the object lives for one check
    def surface(self, row: int) -> Surface:
        return Surface(self.shapes.cloud(row))

    def _digest(self, row: int) -> str:
        entry = self.shapes.entries.get(self.shapes.names[row])
        return (entry.source.blake2b if entry else None) or f"{row}"

    def _same_bytes(self) -> Iterator[tuple[int, int]]:
        """Each file and the first with the same bytes; one in training, if there is one."""
        first: dict[str, int] = {}
        for row in range(len(self.shapes.names)):
            if (other := first.setdefault(self._digest(row), row)) != row:
                yield other, row

    def twins(self) -> Iterator[Suspect]:
        """Shapes that are the same as another, each once in each place, beside the shape that it is most like."""
        best: dict[tuple[int, str], Suspect] = {}
        for each in self._pairs():
            self.same += 1
            if each.sure > getattr(best.get((each.row, each.where)), "sure", 0.0):
                best[each.row, each.where] = each
        yield from best.values()

    def _pairs(self) -> Iterator[Suspect]:
        for first, second in followed(
            self.candidates, "comparing shapes", "pair", len(self.candidates), show=self.progress
        ):
            if self._digest(first) == self._digest(second):
                yield self._twin(first, second, "identical bytes", 1.0)
                continue
            clouds = not (self._is_mesh(first) or self._is_mesh(second))
            if clouds and self._same_geometry(first, second):  # of many points, two random parts may not fit
                yield self._twin(first, second, IDENTICAL, 1.0)
                continue
            fit = fit_surfaces(self.surface(first), self.surface(second))
            if fit.is_same:
                same = not clouds and fit.kind != "mirrored" and self._same_geometry(first, second)
                kind, sure = (IDENTICAL, 1.0) if same else (fit.kind, min(NEARLY, 1 / fit.distance))
                other_axis = ", with another axis up" * (same and fit.kind == "turned")
                yield self._twin(first, second, kind, sure, other_axis)

    def _same_geometry(self, first: int, second: int) -> bool:
        """True if two files have the same vertices or points, in any order, to the precision of text formats.

        They may have the upward axes that are usual for their formats.
        """
        one, other = self._corners(first), self._corners(second)
        if _same_points(one, other):
            return True
        axes: list[Axis] = [usual_up([self.shapes.names[row]]) or "z" for row in (first, second)]
        return axes[0] != axes[1] and _same_points(rotate_up(one, axes[0], axes[1]), other)

    def _is_mesh(self, row: int) -> bool:
        entry = self.shapes.entries.get(self.shapes.names[row])
        return entry is not None and is_mesh_file(Path(entry.file))

    @lru_cache(maxsize=64)  # noqa: B019 - as above; pairs are sorted
    def _corners(self, row: int) -> NDArray[np.floating[Any]]:
        if not self._is_mesh(row):
            return self.shapes.whole_cloud(row)
        mesh = read_mesh(Path(self.shapes.entries[self.shapes.names[row]].file))
        return mesh.vertices[np.unique(mesh.faces)]  # others are not drawn, and many programs do not write them

    def _twin(self, first: int, second: int, kind: str, sure: float, further: str = "") -> Suspect:
        shapes = self.shapes
        places = shapes.splits[first], shapes.splits[second]
        labels = shapes.labels[first], shapes.labels[second]
        where = "split" if places[0] != places[1] else "classes" if labels[0] != labels[1] else "class"
        told = {
            "split": f"in {places[1]} and in {places[0]}",
            "classes": f"also called {shapes.classes[labels[0]]}",
            "class": "there twice",
        }
        also = f", and called {shapes.classes[labels[0]]}" if where == "split" and labels[0] != labels[1] else ""
        return self._suspect(second, kind, told[where] + also + further, first, where, sure)

    def _suspect(
        self, row: int, kind: str, note: str, other: int = -1, where: str = "odd", sure: float = 0.5
    ) -> Suspect:
        shapes = self.shapes
        name, label = shapes.names[row], shapes.classes[shapes.labels[row]]
        twin = shapes.names[other] if other >= 0 else ""
        return Suspect(name, label, shapes.splits[row], kind, note, twin, row, other, where, sure)

    def labels(self, twins: list[Suspect]) -> Iterator[Suspect]:
        """Shapes whose label is perhaps wrong, with what they would be instead."""
        shapes, labels = self.shapes, self.shapes.labels
        groups = self.grouping.groups
        links = [(groups[each.row], groups[each.other]) for each in twins if labels[each.row] == labels[each.other]]
        together = connected(links, self.grouping.count)[groups]
        folds = assign_folds(together, labels.tolist(), self.seed, FOLDS)
        if len(np.unique(labels)) < 2 or not (folds >= 0).any():
            return
        outputs = fit_head(self.baseline, self.blocks, torch.from_numpy(labels), folds, together)
        tested = np.flatnonzero(folds >= 0)
        probabilities = outputs[torch.from_numpy(tested)].softmax(dim=1).numpy()
        self.agreed = float((probabilities.argmax(axis=1) == labels[tested]).mean())
        given, instead = given_and_other(probabilities, labels[tested])
        for place in np.flatnonzero(suspicious_labels(probabilities, labels[tested])).tolist():
            row, other = int(tested[place]), int(instead[place])
            note = f"more like {shapes.classes[other]} ({probabilities[place, other]:.0%})"
            yield self._suspect(row, LABEL, note, self._example(row, other), LABEL, 1 - float(given[place]))

    def _example(self, row: int, label: int) -> int:
        """The shape of a class that is nearest to a shape."""
        inside = np.flatnonzero((self.shapes.labels == label) & (np.arange(len(self.rows)) != row))
        if not len(inside):
            return -1
        return int(inside[np.linalg.norm(self.rows[inside] - self.rows[row], axis=1).argmin()])

    def oddities(self) -> Iterator[Suspect]:
        """Shapes unlike their class, each once by kind."""
        shapes, rows = self.shapes, range(len(self.shapes.names))
        sizes = np.array([self.surface(row).size for row in rows])
        found: list[Oddity] = [
            *odd_sizes(sizes, shapes.labels),
            *odd_counts(shapes.counts, shapes.labels),
            *odd_extents([shapes.cloud(row) for row in rows]),
            *odd_axes(self.blocks[0][:, 0].numpy(), shapes.labels, shapes.cloud, shapes.sets[0].up),
        ]
        for row, kind, note in found:
            example = self._example(row, int(shapes.labels[row])) if kind == "size" else -1
            if kind == "upward axis" and suffix_of(shapes.names[row]) in shapes.sets[0].options.turned:
                note = note.replace("turned?", f"{suffix_of(shapes.names[row])} files are read with Y up")
            yield self._suspect(row, kind, note, example)


def _same_points(one: NDArray[np.floating[Any]], other: NDArray[np.floating[Any]]) -> bool:
    """True if each point of one [n, 3] is at a point of the other [m, 3]."""
    least = SAME_POINT * np.ptp(one, axis=0).max()
    if max(np.abs(end(one, axis=0) - end(other, axis=0)).max() for end in (np.min, np.max)) > least:
        return False  # most pairs, at once
    trees = KDTree(one), KDTree(other)
    return bool(max(tree.query(points.data)[0].max() for tree, points in (trees, trees[::-1])) <= least)


def overview(shapes: Shapes) -> Iterator[str]:
    """What the folder itself says: its classes and splits, and what is not used."""
    counts = Counter(shapes.classes[label] for label in shapes.labels)
    splits = ", ".join(f"{count:,} {split}" for split, count in Counter(shapes.splits).items())
    yield f"{counted(len(shapes.names), 'shape')} of {counted(len(shapes.classes), 'class')}; {splits}; {shapes.rule}"
    yield from shapes.warnings
    by_case = defaultdict(list)
    for name in shapes.classes:
        by_case[name.casefold()].append(name)
    for names in by_case.values():
        if len(names) > 1:
            yield f"classes {' and '.join(names)} differ in case alone: are they one class?"
    if empty := [name for name in shapes.classes if not counts[name]]:
        yield f"classes without a shape that can be read: {', '.join(empty)}"
    if single := [name for name, count in counts.items() if count == 1]:
        yield f"classes of one shape, which cannot be tested: {', '.join(single)}"
