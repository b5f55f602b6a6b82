"""Compare the accuracy that `pointset train` reports with that on unseen objects, if several files show one object.

python scripts/experiments/groups.py path/to/labeled_db path/to/modelnet9_obj path/to/modelnet40_ply_hdf5 \
    [--first 0] [--count 24]    # writes results/groups/folders_0.csv

Each number from `--first` on is the seed of one simulated folder. The seed determines the objects, the number and the
kind of files per object, and the form of the file names. The candidates of the model selection have no pretrained
networks. Groups are inferred from file names, see `pointset.data.groups`.
"""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
from saved import RESULTS, write_csv

import pointset
from pointset.data import read_mesh, sample_points
from pointset.training import selection

POINTS, DENSE, UNSEEN = 200, 4000, 40
Cloud = np.ndarray
Draw = np.random.Generator


def scaled(points: Cloud) -> Cloud:
    """The points, centred and scaled to fit into a cube of side 2."""
    centred = points - points.mean(axis=0)
    return centred / np.abs(centred).max()


def some(points: Cloud, draw: Draw) -> Cloud:
    """`POINTS` of the points, or all if there are fewer, in random order."""
    return points[draw.permutation(len(points))[:POINTS]]


def seen_from(points: Cloud, azimuth: float, height: float, draw: Draw) -> Cloud:
    """`POINTS` of the points that are visible from a direction, given by azimuth and slope."""
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
    """The rotation matrix about an axis, or a matrix for each of several angles."""
    cos, sin = np.cos(angle), np.sin(angle)
    one, other = (place for place in range(3) if place != axis)
    turn = np.zeros((*np.shape(angle), 3, 3))
    turn[..., axis, axis] = 1
    turn[..., one, one] = turn[..., other, other] = cos
    turn[..., one, other], turn[..., other, one] = -sin, sin
    return turn


def views(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """A partial view of the object, from a direction around it."""
    return seen_from(dense, 2 * np.pi * share, draw.uniform(0.2, 0.8), draw)


def swung(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """The object with its upper part bent forwards or backwards."""
    own = scaled(some(dense, draw))
    bent = 0.7 * np.sin(2 * np.pi * share) / (1 + np.exp(-8 * own[:, 2]))
    return np.einsum("nij,nj->ni", about(0, bent), own)


def noisy(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """A new random sample of the points, with noise."""
    return scaled(some(dense, draw)) + draw.normal(size=(min(POINTS, len(dense)), 3)) * 0.015


def turned(dense: Cloud, share: float, draw: Draw) -> Cloud:
    """A new random sample of the points, rotated at random."""
    turn = np.linalg.qr(draw.normal(size=(3, 3)))[0]
    return some(dense, draw) @ (turn * np.linalg.det(turn))


KINDS = (views, swung, noisy, turned)


def code(number: int) -> str:
    """A hexadecimal file name."""
    return hashlib.md5(str(number).encode()).hexdigest()[:8]


NAMES: dict[str, Callable[[str, int, int, int, int], str]] = {
    "chair_7_3": lambda c, o, v, n, r: f"{c}_{o}_{v}",
    "obj 7 scan 3 raw": lambda c, o, v, n, r: f"obj {o} scan {v} raw",
    "0007.003": lambda c, o, v, n, r: f"{o:04}.{v:03}",
    "3f9a41c2_3": lambda c, o, v, n, r: f"{code(o)}_{v}",
    "rec7_chair_w03": lambda c, o, v, n, r: f"rec{o}_{c}_w{v:02}",
    "v03-chair-7": lambda c, o, v, n, r: f"v{v:02}-{c}-{o}",
    "IMG_0042 in order": lambda c, o, v, n, r: f"IMG_{n:05}",
    "3f9a41c2": lambda c, o, v, n, r: code(r),
}
"""Forms of file names. The first six contain the number or the code of the object."""


def make_sets(objects: list[tuple[str, Cloud]], sets: dict[str, Any], draw: Draw, most: int = 99) -> pointset.PointSets:
    """The files of the objects as a dataset, at most `most` files per object."""
    clouds, labels, names = list[Cloud](), list[str](), list[str]()
    for number, (label, dense) in enumerate(objects):
        low, high = sets["files"]
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
        """The clouds of the objects of a source by class, in random order; of ModelNet40, some classes at random."""
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
    """Return a row of the table: the reported accuracy for a folder, and the accuracy on unseen objects."""
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
    about = {"kind": kind, "names": NAMES[naming], "files": (fewest, fewest + int(draw.integers(0, 4)))}
    began = time.process_time()
    train = make_sets(seen, about, draw)
    best = selection.select_model(train, budget=0.001, progress=False, seed=number)
    seconds = time.process_time() - began
    chosen = next(each for each in best.candidates if each.chosen)
    true = pointset.evaluate(best.fitted.model, make_sets(unseen, about, draw, most=2)).accuracy
    return {
        "folder": number,
        "objects": f"{len(seen)} of {source}, {len(found)} classes",
        "files": kind.__name__,
        "names": naming,
        "shapes": len(train),
        "groups": best.grouping.count if best.grouping else "none",
        "reported %": f"{100 * chosen.accuracy:.1f}",
        "interval": f"{100 * chosen.low:.1f} to {100 * chosen.high:.1f}",
        "unseen objects": len(unseen),
        "accuracy on them %": f"{100 * true:.1f}",
        "difference": f"{100 * (chosen.accuracy - true):+.1f}",
        "inside": "yes" if chosen.low <= true <= chosen.high else "no",
        "CPU seconds": f"{seconds:.0f}",
    }


def main(labeled: Path, simplified: Path, release: Path, *, first: int = 0, count: int = 24) -> None:
    """Simulate the folders, and write the table."""
    selection.SVM_MODEL = "features+surface-svm"  # without embeddings, whose networks were trained on ModelNet40
    objects, rows = Objects(labeled, simplified, release), list[dict[str, Any]]()
    for number in range(first, first + count):
        rows.append(folder(number, objects))
        print(*rows[-1].values(), sep="; ", flush=True)
        write_csv(RESULTS / "groups" / f"folders_{first}.csv", rows)


if __name__ == "__main__":
    cyclopts.run(main)
