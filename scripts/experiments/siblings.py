"""Is the accuracy that `pointset train` prints that of objects which it has not seen, if shapes have siblings?

python scripts/experiments/siblings.py path/to/labeled_db path/to/modelnet9_obj path/to/modelnet40_ply_hdf5 \
    [--first 0] [--count 24]    # writes results/siblings/; --count 0: folders without siblings, and with shared sides

A number draws everything about a folder: whose objects it has, how many, what their siblings are and how they are
named. The interval that is printed is compared with the accuracy on objects of which nothing was seen. Candidates are
the classical ones. Folders without siblings must get no group.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np

import pointset
from pointset.data import read_mesh
from pointset.data.groups import number_groups
from pointset.data.likeness.siblings import find_groups, invariant_rows, named_groups
from pointset.data.sampling import sample_points
from pointset.runs.spreadsheets import as_csv
from pointset.training import automatic

POINTS, DENSE, UNSEEN, SHARED = 200, 4000, 40, 40
RESULTS = Path(__file__).parent / "results" / "siblings"
Cloud = np.ndarray
Draw = np.random.Generator


def scaled(points: Cloud) -> Cloud:
    """Points about 0 within a cube of sides 2."""
    centred = points - points.mean(axis=0)
    return centred / np.abs(centred).max()


def some(points: Cloud, draw: Draw) -> Cloud:
    """Some of the points."""
    return points[draw.permutation(len(points))[:POINTS]]


def seen_from(points: Cloud, azimuth: float, height: float, draw: Draw) -> Cloud:
    """The points that a camera sees from one side."""
    cells = 40 if len(points) > 2000 else 16
    towards = np.array([np.cos(azimuth), np.sin(azimuth), height]) / (1 + height**2) ** 0.5
    across = np.cross(towards, [0, 0, 1.0])
    own = scaled(points)
    pixels = [((own @ axis + 1) / 2 * cells).astype(int).clip(0, cells) for axis in (across, np.cross(towards, across))]
    cell, depth = pixels[0] * (cells + 1) + pixels[1], own @ towards
    nearest = np.full((cells + 1) ** 2, -9.0)
    np.maximum.at(nearest, cell, depth)
    return some(points[depth >= nearest[cell] - 0.1], draw)


def about(axis: int, angle: Any) -> Cloud:
    """The rotation about an axis, or one for each of several angles."""
    cos, sin = np.cos(angle), np.sin(angle)
    one, other = (place for place in range(3) if place != axis)
    turn = np.zeros((*np.shape(angle), 3, 3))
    turn[..., axis, axis] = 1
    turn[..., one, one] = turn[..., other, other] = cos
    turn[..., one, other], turn[..., other, one] = -sin, sin
    return turn


def views(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """Seen from somewhere around it."""
    return seen_from(dense, 2 * np.pi * share, draw.uniform(0.2, 0.8), draw)


def scans(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """Seen from somewhere around it, with noise, on a turntable: every view is turned to the camera."""
    seen = seen_from(dense, 2 * np.pi * share, 0.5, draw)
    return seen @ about(2, -2 * np.pi * share).T + draw.normal(size=seen.shape) * 0.005 * np.abs(seen).max()


def swung(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """Its upper part swings forwards and backwards."""
    own = scaled(some(dense, draw))
    bent = 0.7 * np.sin(2 * np.pi * share) / (1 + np.exp(-8 * own[:, 2]))
    return np.einsum("nij,nj->ni", about(0, bent), own)


def twisted(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """Twisted about the vertical axis."""
    own = scaled(some(dense, draw))
    return np.einsum("nij,nj->ni", about(2, (2 * share - 1) * own[:, 2]), own)


def stretched(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """It breathes: one axis grows as another shrinks."""
    return some(dense, draw) * [1 + 0.15 * np.sin(2 * np.pi * share), 1 - 0.15 * np.sin(2 * np.pi * share), 1]


def noisy(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """Sampled anew, with noise."""
    return scaled(some(dense, draw)) + draw.normal(size=(min(POINTS, len(dense)), 3)) * 0.015


def coloured(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """The same points: only colours, which no candidate uses, differ."""
    return dense[:POINTS][draw.permutation(min(POINTS, len(dense)))]


def turned(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """Sampled anew and turned at random."""
    turn = np.linalg.qr(draw.normal(size=(3, 3)))[0]
    return some(dense, draw) @ (turn * np.linalg.det(turn))


def spun(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """Sampled anew, turned about the vertical axis and of another size."""
    return some(dense, draw) @ about(2, 2 * np.pi * share).T * draw.uniform(0.5, 2)


KINDS = (views, scans, swung, twisted, stretched, noisy, coloured, turned, spun)


def code(number: int) -> str:
    """A name that says nothing."""
    return hashlib.md5(str(number).encode()).hexdigest()[:8]


WORDS = ("alpha", "bravo", "coral", "delta", "ember", "fjord", "gamma", "hazel", "indigo", "jade", "koala", "lima")
SIDES = ("Front", "Back", "Left", "Right", "Top", "Under", "Inner", "Outer")
NAMES: dict[str, Callable[[str, int, int, int, int], str]] = {
    "chair_7_3": lambda c, o, v, n, r: f"{c}_{o}_{v}",
    "v03-chair-7": lambda c, o, v, n, r: f"v{v:02}-{c}-{o}",
    "obj 7 scan 3 raw": lambda c, o, v, n, r: f"obj {o} scan {v} raw",
    "0007.003": lambda c, o, v, n, r: f"{o:04}.{v:03}",
    "coral_lima_3": lambda c, o, v, n, r: f"{WORDS[o % 12]}_{WORDS[(o // 12 + 5 * o) % 11]}_{v}",
    "7c": lambda c, o, v, n, r: f"{o}{'abcdefghijkl'[v]}",
    "chair7Left": lambda c, o, v, n, r: f"{c}{o}{SIDES[v]}",
    "3f9a41c2_3": lambda c, o, v, n, r: f"{code(o)}_{v}",
    "2021-05-07_3": lambda c, o, v, n, r: f"2021-{o % 12 + 1:02}-{o:02}_{v}",
    "obj7/3": lambda c, o, v, n, r: f"obj{o}/{v}",
    "IMG_0042 in order": lambda c, o, v, n, r: f"IMG_{n:05}",
    "no telling name": lambda c, o, v, n, r: code(r),
}


TELLING = [naming for naming in NAMES if naming not in ("coral_lima_3", "IMG_0042 in order", "no telling name")]
"""Those in which every object has a part of its own."""


def make_sets(objects: list[tuple[str, Cloud]], sets: dict[str, Any], draw: Draw, most: int = 99) -> pointset.PointSets:
    """The siblings of some objects, at most so many of each."""
    clouds, labels, names = list[Cloud](), list[str](), list[str]()
    for number, (label, dense) in enumerate(objects):
        low, high = sets["siblings"]
        count = int(draw.integers(low, high, endpoint=True))
        for view in np.sort(draw.permutation(count)[:most]).tolist():
            name = sets["names"](label.lower(), number, view, len(clouds), int(draw.integers(1 << 32)))
            clouds.append(sets["kind"](dense, view / count, draw).astype(np.float32))
            labels.append(label)
            names.append(f"{label}/{name}.pcd")
    return pointset.from_arrays(clouds, labels, names=names, normalize="center-standardize")


class Objects:
    """The objects of all sources, by class."""

    def __init__(self, labeled: Path, simplified: Path, release: Path) -> None:
        files = {"labeled_db": sorted(labeled.glob("*/*.off")), "modelnet9_obj": sorted(simplified.glob("*/*/*.obj"))}
        self.meshes = {
            name: [(path.relative_to(root).parts[0], path) for path in files[name]]
            for name, root in zip(files, (labeled, simplified), strict=True)
        }
        self.release = pointset.load_dataset(release, normalize="none", progress=False)

    def of(self, source: str, draw: Draw) -> dict[str, list[Cloud]]:
        """The points of objects of some classes, in random order."""
        found: dict[str, list[Cloud]] = {}
        if source == "ModelNet40":
            labels = self.release.labels.numpy()
            full = np.flatnonzero(np.bincount(labels) >= UNSEEN + 15)
            for label in draw.permutation(full)[: draw.integers(6, 14)].tolist():
                rows = draw.permutation(np.flatnonzero(labels == label)).tolist()
                found[self.release.classes[label]] = [self.release.points[row].numpy().astype(float) for row in rows]
            return found
        for place in draw.permutation(len(self.meshes[source])).tolist():
            label, path = self.meshes[source][place]
            points = sample_points(read_mesh(path), DENSE, seed=0).astype(float)
            if source == "modelnet9_obj":
                points = points @ np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], float).T
            found.setdefault(label, []).append(points)
        return found


def folder(number: int, objects: Objects) -> dict[str, Any]:
    """What is printed for a folder, and what is true."""
    draw = np.random.default_rng([48, number])
    rounds, place = divmod(number, len(NAMES))
    naming = [*NAMES][np.random.default_rng([49, rounds]).permutation(len(NAMES))[place]]
    kind = KINDS[draw.integers(len(KINDS))]
    source = str(draw.choice(["ModelNet40", "labeled_db", "modelnet9_obj"], p=[0.6, 0.3, 0.1]))
    found, seen, unseen = objects.of(source, draw), [], []
    own = int(draw.integers(5, 12))
    for label, clouds in found.items():
        seen += [(label, cloud) for cloud in clouds[:own]]
        unseen += [(label, cloud) for cloud in clouds[own : own + UNSEEN]]
    fewest = int(draw.integers(2, 5))
    about = {"kind": kind, "names": NAMES[naming], "siblings": (fewest, fewest + int(draw.integers(0, 4)))}
    began = time.process_time()
    train = make_sets(seen, about, draw)
    best = automatic.fit_automatic(train, budget=0.001, progress=False, seed=number)
    seconds = time.process_time() - began
    chosen = next(each for each in best.candidates if each.chosen)
    true = pointset.evaluate(best.fitted.model, make_sets(unseen, about, draw, most=2)).accuracy
    return {
        "folder": number,
        "objects": f"{len(seen)} of {source}, {len(found)} classes",
        "siblings": kind.__name__,
        "names": naming,
        "shapes": len(train),
        "groups": best.siblings.count if best.siblings.rule else "none",
        "by": best.siblings.rule or "nothing",
        "printed %": f"{100 * chosen.accuracy:.1f}",
        "interval": f"{100 * chosen.low:.1f} to {100 * chosen.high:.1f}",
        "of seen groups %": "" if chosen.seen is None else f"{100 * chosen.seen:.1f}",
        "unseen objects": len(unseen),
        "accuracy on them %": f"{100 * true:.1f}",
        "difference": f"{100 * (chosen.accuracy - true):+.1f}",
        "inside": "yes" if chosen.low <= true <= chosen.high else "no",
        "core-seconds": f"{seconds:.0f}",
    }


def without_siblings(labeled: Path, simplified: Path, release: Path) -> Iterator[dict[str, Any]]:
    """The groups that are found where there are none."""
    for path in (labeled, simplified, release):
        sets = pointset.load_dataset(path, points=1024, normalize="center-standardize", progress=False)
        if path == release:
            sets = sets.subset(np.random.default_rng(0).permutation(len(sets))[:2000].tolist())
        yield {"folder": path.name, "shapes": len(sets), "groups found": find_groups(sets).rule or "none"}


def shared_sides(number: int, objects: Objects) -> dict[str, Any]:
    """How often names of nine kinds tell the objects, if all are seen from the same sides."""
    draw = np.random.default_rng([77, number])
    drawn = objects.of(str(draw.choice(["ModelNet40", "labeled_db"])), draw)
    classes, own, sides = (int(draw.integers(*ends)) for ends in ((2, 8), (4, 13), (3, 8)))
    shapes, clouds = list[tuple[str, int, int]](), list[Cloud]()
    for label, dense in [*drawn.items()][:classes]:
        for place, side in np.ndindex(min(own, len(dense)), sides):
            seen = seen_from(dense[place], 2 * np.pi * side / sides + 0.3, 0.9 * side / sides - 0.2, draw)
            shapes.append((label, place, side))
            clouds.append(seen.astype(np.float32))
    true, found = number_groups((label, place) for label, place, _ in shapes), Counter[str]()
    rows = invariant_rows(pointset.from_arrays(clouds, [one[0] for one in shapes], normalize="none"))
    for naming in TELLING:
        names = [f"{one[0]}/{NAMES[naming](one[0].lower(), *one[1:], row, 0)}.pcd" for row, one in enumerate(shapes)]
        sets = pointset.from_arrays(clouds, [one[0] for one in shapes], names=names, normalize="none")
        named = named_groups(sets, rows=rows)
        found["objects" if np.array_equal(named.groups, true) else "others" if named.rule else "none"] += 1
    counts = {f"groups: {what}": found[what] for what in ("objects", "none", "others")}
    return {"folder": number, "classes": classes, "of each": own, "sides": sides, **counts}


def main(labeled: Path, simplified: Path, release: Path, *, first: int = 0, count: int = 24) -> None:
    """Write both tables."""
    automatic.ROWS = ("features-svm", "surface-svm")  # type: ignore[assignment]
    objects, rows = Objects(labeled, simplified, release), list[dict[str, Any]]()
    RESULTS.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        rows.append(folder(number, objects))
        print(*rows[-1].values(), sep="; ", flush=True)
        (RESULTS / f"folders_{first}.csv").write_text(as_csv(rows), encoding="utf-8")
    if count == 0:
        table = as_csv([*without_siblings(labeled, simplified, release)])
        (RESULTS / "without_siblings.csv").write_text(table, encoding="utf-8")
        print(table)
        table = as_csv([shared_sides(number, objects) for number in range(SHARED)])
        (RESULTS / "shared_sides.csv").write_text(table, encoding="utf-8")
        print(table)


if __name__ == "__main__":
    cyclopts.run(main)
