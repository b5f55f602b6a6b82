"""Random defects of the objects: missing parts, dents, shear and holes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from pointset.data.readers.meshes import Mesh

if TYPE_CHECKING:
    from trimesh import Trimesh


def finished(parts: list[Trimesh], rng: Generator) -> tuple[Mesh, NDArray[np.int64]]:
    """Join the parts of one object into a mesh, with defects and a random rotation about the up axis and scale.

    Returns:
        The mesh, and for each of its faces the index of its part in `PARTS`.
    """
    parts = _without_some(parts, rng)
    for part in parts:
        if rng.random() < 0.08:
            _knock(part, rng)
    vertices = np.concatenate([part.vertices for part in parts])
    starts = np.cumsum([0, *[len(part.vertices) for part in parts]])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts[:-1], strict=True)])
    vertices = _sheared(_dented(vertices, rng), rng)
    placed, kept = _placed(vertices, rng), _without_a_hole(vertices, faces, rng)
    labels = np.repeat([part.metadata["part"] for part in parts], [len(part.faces) for part in parts])
    return Mesh(placed, faces[kept]), labels[kept]


def _without_some(parts: list[Trimesh], rng: Generator) -> list[Trimesh]:
    """Sometimes remove one or two of at least five parts; never the first, which is the body."""
    lost = rng.choice([0, 1, 2], p=[0.75, 0.17, 0.08])
    if len(parts) < 5 or not lost:
        return parts
    gone = set(rng.choice(np.arange(1, len(parts)), size=lost, replace=False).tolist())
    return [part for index, part in enumerate(parts) if index not in gone]


def _knock(part: Trimesh, rng: Generator) -> None:
    """Tilt and shift one part slightly."""
    from trimesh.transformations import rotation_matrix

    size = float(part.extents.max())
    part.apply_transform(rotation_matrix(rng.normal(0.0, 0.12), rng.normal(size=3), part.centroid))
    part.apply_translation(rng.normal(0.0, 0.03 * size, 3))


def _dented(vertices: np.ndarray, rng: Generator) -> np.ndarray:
    """Add a smooth random displacement field of a few long waves."""
    size = np.ptp(vertices, axis=0).max()
    waves = rng.normal(0.0, 4.0, (4, 3)) / size
    phases, heights = rng.uniform(0, 2 * np.pi, 4), rng.normal(0.0, 0.008 * size, (4, 3))
    return vertices + np.sin(vertices @ waves.T + phases) @ heights


def _sheared(vertices: np.ndarray, rng: Generator) -> np.ndarray:
    """Stretch the axes and shear the object slightly."""
    matrix = np.diag(rng.uniform(0.88, 1.14, 3))
    matrix[:2, 2] = rng.normal(0.0, 0.04, 2)
    return vertices @ matrix.T


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
