"""Generate shapes10 as a folder of OFF files: the kinds of objects, with random defects."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.random import Generator

from pointset.data.options import SPLITS
from pointset.data.readers.meshes import Mesh
from pointset.data.readers.off import write_off
from pointset.data.shapes10.kinds import bench, bookshelf, chair, desk, dresser, lamp, mug, stool, table, vase
from pointset.data.shapes10.solids import Solid
from pointset.errors import PointsetError
from pointset.runs.atomic import new_folder
from pointset.runs.progress import followed
from pointset.runs.records import write_json

KINDS: dict[str, Callable[[Generator], list[Solid]]] = {
    function.__name__: function for function in (bench, bookshelf, chair, desk, dresser, lamp, mug, stool, table, vase)
}
GENERATOR_VERSION = 2
"""Version of the generator; increased whenever a seed gives other meshes."""
MARKER = "shapes10.json"
"""File with the format, written last; it marks a complete folder made by this generator."""


def make_shape(kind: str, split: str, number: int, seed: int = 0) -> Mesh:
    """Generate one shape of the dataset shapes10.

    Args:
        kind: a class of shapes10, such as "chair".
        split: "train" or "test".
        number: the instance, from 0.
        seed: another seed gives other shapes than those of the dataset.

    Returns:
        The mesh; Z is up.
    """
    rng = np.random.default_rng((seed, list(KINDS).index(kind), SPLITS.index(split), number))
    return _with_defects(KINDS[kind](rng), rng)


def is_current(folder: Path) -> bool:
    """True if a folder is complete and was made by this version of the generator."""
    try:
        return bool(json.loads((folder / MARKER).read_text(encoding="utf-8"))["format"] == GENERATOR_VERSION)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def build_shapes10(folder: Path, *, seed: int = 0, train: int = 100, test: int = 30, progress: bool = True) -> None:
    """Write the dataset as `kind/split/kind_0001.off` unless it exists; the same seed gives the same bytes.

    There are `train` and `test` instances per kind; numbers continue from train to test, as in ModelNet. If the folder
    holds something else, such as the dataset of another version, it is a PointsetError.
    """
    if is_current(folder):
        return
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise PointsetError(
            f"{folder} is not the shapes10 of this version of pointset: move it away, and shapes10 will be built there"
        )
    counts = {"train": train, "test": test}
    with new_folder(folder) as temporary:
        for kind in followed(KINDS, "building shapes10", "kind", len(KINDS), show=progress):
            for split in SPLITS:
                (temporary / kind / split).mkdir(parents=True, exist_ok=True)
                for number in range(counts[split]):
                    label = number + 1 + (train if split == "test" else 0)
                    mesh = make_shape(kind, split, number, seed)
                    write_off(temporary / kind / split / f"{kind}_{label:04d}.off", mesh)
        write_json(temporary / MARKER, {"format": GENERATOR_VERSION, "seed": seed, "shapes_per_kind": counts})


def _with_defects(parts: list[Solid], rng: Generator) -> Mesh:
    """Join the parts of an object, the body first, into a mesh with defects, rotated and scaled.

    One or two of at least five parts may be missing, others are tilted and shifted, and faces around one point removed.
    """
    from trimesh.transformations import rotation_matrix
    from trimesh.util import append_faces

    lost = rng.choice([0, 1, 2], p=[0.75, 0.17, 0.08])
    if lost and len(parts) >= 5:
        gone = rng.choice(np.arange(1, len(parts)), size=lost, replace=False).tolist()
        parts = [part for index, part in enumerate(parts) if index not in gone]
    for part in parts:
        if rng.random() < 0.08:
            size = float(part.extents.max())
            part.apply_transform(rotation_matrix(rng.normal(0.0, 0.12), rng.normal(size=3), part.centroid))
            part.apply_translation(rng.normal(0.0, 0.03 * size, 3))
    vertices, faces = append_faces([part.vertices for part in parts], [part.faces for part in parts])
    vertices = _deformed(vertices, rng)
    placed, kept = _placed(vertices, rng), _without_a_hole(vertices, faces, rng)
    return Mesh(placed, faces[kept])


def _deformed(vertices: np.ndarray, rng: Generator) -> np.ndarray:
    """Add a smooth random displacement field of a few long waves, then stretch the axes and shear slightly."""
    size = np.ptp(vertices, axis=0).max()
    waves = rng.normal(0.0, 4.0, (4, 3)) / size
    phases, heights = rng.uniform(0, 2 * np.pi, 4), rng.normal(0.0, 0.008 * size, (4, 3))
    matrix = np.diag(rng.uniform(0.88, 1.14, 3))
    matrix[:2, 2] = rng.normal(0.0, 0.04, 2)
    return (vertices + np.sin(vertices @ waves.T + phases) @ heights) @ matrix.T


def _placed(vertices: np.ndarray, rng: Generator) -> np.ndarray:
    """Rotate about z, and scale and shift at random, because ModelNet's meshes have all units and positions."""
    angle, scale = rng.uniform(0, 2 * np.pi), np.exp(rng.uniform(np.log(5.0), np.log(500.0)))
    cosine, sine = np.cos(angle), np.sin(angle)
    turn = np.array([[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    return scale * (vertices @ turn.T + rng.normal(0.0, 0.2, 3))


def _without_a_hole(vertices: np.ndarray, faces: np.ndarray, rng: Generator) -> np.ndarray:
    """Indices of the faces that stay: in 40 % of cases, those around one point are removed, at most a fifth of all."""
    if rng.random() < 0.6:
        return np.arange(len(faces))
    centres = vertices[faces].mean(axis=1)
    distance = np.linalg.norm(centres - centres[rng.integers(len(centres))], axis=1)
    count = int(rng.uniform(0.0, 0.2) * len(faces))
    return np.sort(np.argsort(distance, kind="stable")[count:])
