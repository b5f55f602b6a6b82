"""Is the accuracy that `pointset train` prints that of objects which it has not seen, if shapes have siblings?

python scripts/experiments/siblings.py path/to/labeled_db path/to/modelnet9_obj    # writes results/siblings/

Twenty folders are made of labeled_db: views, bent frames, colours or turned copies of ten objects of each class, with
five kinds of names. The interval that is printed is compared with the accuracy on objects of which nothing was seen.
Candidates are the classical ones. Folders without siblings must get no group.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import pointset
from pointset.baselines.likeness import find_groups
from pointset.data import read_mesh
from pointset.data.sampling import sample_points
from pointset.runs.spreadsheets import as_csv
from pointset.training import automatic
from pointset.training.candidates import Classes

OBJECTS, SEEN, POINTS, DENSE = 20, 10, 200, 6000
RESULTS = Path(__file__).parent / "results" / "siblings"
Cloud = np.ndarray


def seen_from(points: Cloud, azimuth: float, count: int, generator: np.random.Generator, cells: int = 40) -> Cloud:
    """The points that a camera sees from one side, a little from above."""
    towards = np.array([np.cos(azimuth), np.sin(azimuth), 0.5]) / 1.25**0.5
    across = np.cross(towards, [0, 0, 1.0])
    centred = points - points.mean(axis=0)
    centred = centred / np.abs(centred).max()
    pixels = [
        ((centred @ axis + 1) / 2 * cells).astype(int).clip(0, cells) for axis in (across, np.cross(towards, across))
    ]
    cell, depth = pixels[0] * (cells + 1) + pixels[1], centred @ towards
    nearest = np.full((cells + 1) ** 2, -9.0)
    np.maximum.at(nearest, cell, depth)
    return points[generator.permutation(np.flatnonzero(depth >= nearest[cell] - 0.08))[:count]]


def bent(points: Cloud, strength: float) -> Cloud:
    """Points that are turned about x by an angle that grows with their height."""
    centred = points - points.mean(axis=0)
    x, y, z = (centred / np.abs(centred).max()).T
    angle = strength * z
    return np.stack([x, y * np.cos(angle) - z * np.sin(angle), y * np.sin(angle) + z * np.cos(angle)], axis=1)


def turned(points: Cloud, generator: np.random.Generator) -> Cloud:
    """Points after a random rotation."""
    turn = np.linalg.qr(generator.normal(size=(3, 3)))[0]
    return points @ (turn * np.linalg.det(turn))


def siblings(kind: str, dense: Cloud, generator: np.random.Generator) -> list[Cloud]:
    """All siblings of one object."""

    def some() -> Cloud:
        return dense[generator.permutation(len(dense))[:POINTS]]

    if kind == "views":
        return [seen_from(dense, 2 * np.pi * view / 6, POINTS, generator) for view in range(6)]
    if kind == "bent":
        return [bent(some(), strength) for strength in np.linspace(-0.8, 0.8, 4)]
    return [some() if kind == "colours" else turned(some(), generator) for _ in range(3)]


NAMES: dict[str, Callable[[int, int, int], str]] = {
    "view last": lambda o, v, r: f"shape_{o}_{v}",
    "view first": lambda o, v, r: f"view{v}-shape{o}",
    "in the middle": lambda o, v, r: f"part {o} scan {v} left",
    "zero-padded": lambda o, v, r: f"{o:04}_{v:03}",
    "no telling name": lambda o, v, r: f"{r:08x}",
}
KINDS = ("views", "bent", "colours", "turned")


def make_sets(objects: Sequence[tuple[str, Cloud]], kind: str, naming: str, seed: int, most: int) -> pointset.PointSets:
    """The siblings of some objects, at most so many of each."""
    generator, clouds, labels, names = np.random.default_rng(seed), [], [], []
    for number, (label, dense) in enumerate(objects):
        views = siblings(kind, dense, generator)
        for view in generator.permutation(len(views))[:most].tolist():
            clouds.append(views[view].astype(np.float32))
            labels.append(label)
            names.append(f"{label}/{NAMES[naming](number, view, int(generator.integers(1 << 32)))}.pcd")
    return pointset.from_arrays(clouds, labels, names=names, normalize="center-standardize")


def measure(objects: list[tuple[str, Cloud]]) -> Iterator[dict[str, Any]]:
    """What is printed for each of the folders, and what is true."""
    for row, (kind, naming) in enumerate((kind, naming) for kind in KINDS for naming in NAMES):
        order = np.random.default_rng(row).permutation(OBJECTS)
        seen, unseen = (
            [pair for number, pair in enumerate(objects) if (order[number % OBJECTS] < SEEN) == inside]
            for inside in (True, False)
        )
        train = make_sets(seen, kind, naming, seed=row, most=99)
        best = automatic.fit_automatic(train, budget=0.001, progress=False)
        chosen = next(each for each in best.candidates if each.chosen)
        true = pointset.evaluate(best.fitted.model, make_sets(unseen, kind, naming, seed=1000 + row, most=2)).accuracy
        yield {
            "siblings": kind,
            "names": naming,
            "shapes": len(train),
            "groups": f"{best.siblings.count} of {len(seen)}",
            "by": best.siblings.rule or "none",
            "printed %": f"{100 * chosen.accuracy:.1f}",
            "interval": f"{100 * chosen.low:.1f} to {100 * chosen.high:.1f}",
            "of seen groups %": "" if chosen.seen is None else f"{100 * chosen.seen:.1f}",
            "unseen objects %": f"{100 * true:.1f}",
            "inside": "yes" if chosen.low <= true <= chosen.high else "no",
        }


def without_siblings(folders: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """The groups that are found where there are none."""
    for folder in folders:
        sets = pointset.load_dataset(folder, points=1024, up="z")
        yield {"folder": folder.name, "shapes": len(sets), "groups found": find_groups(sets).rule or "none"}


def main() -> None:
    """Write both tables."""
    labeled, *others = map(Path, sys.argv[1:])
    Classes.rows = ("features-svm", "surface-svm")  # type: ignore[assignment]
    files = sorted(labeled.glob("*/*.off"))
    objects = [(file.parent.name, sample_points(read_mesh(file), DENSE, seed=0).astype(float)) for file in files]
    RESULTS.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    for row in measure(objects):
        print(row, flush=True)
        rows.append(row)
        (RESULTS / "results.csv").write_text(as_csv(rows), encoding="utf-8")
    table = as_csv([*without_siblings([labeled, *others])])
    (RESULTS / "without_siblings.csv").write_text(table, encoding="utf-8")


if __name__ == "__main__":
    main()
