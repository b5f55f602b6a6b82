"""A folder of as many small meshes as one likes: solids turned about an axis, of random proportions."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

SECTIONS = 12
"""Corners of a turned solid; 12 of them, the first at 15 degrees, let a square have its own."""
LEVELS = np.linspace(-np.pi / 2, np.pi / 2, 5)
DRUM = np.array([(0, -1), (1, -1), (1, 0), (1, 1), (0, 1)])
PROFILES: dict[str, NDArray[np.float64]] = {
    "ball": np.stack([np.cos(LEVELS), np.sin(LEVELS)], axis=1),
    "box": DRUM,
    "cone": np.array([(0, -1), (1, -1), (2 / 3, -1 / 3), (1 / 3, 1 / 3), (0, 1)]),
    "cylinder": DRUM,
    "ring": np.stack([1 + 0.4 * np.sin(2 * LEVELS), 0.4 * np.cos(2 * LEVELS)], axis=1),
}
"""Radius and height [5, 2], by class."""
TEST_EVERY = 5
"""One shape of so many is for testing."""


def write_meshes(folder: Path, shapes: int, seed: int = 0) -> None:
    """Write class/split/file, OFF files of 96 triangles; the first of many shapes are those of few."""
    corners = {name: _turned(profile, square=name == "box") for name, profile in PROFILES.items()}
    faces = _faces(len(DRUM))
    head = f"OFF\n{len(DRUM) * SECTIONS} {len(faces)} 0\n"
    tail = "".join("3 {} {} {}\n".format(*face) for face in faces)
    line = "%.5f %.5f %.5f\n" * (len(DRUM) * SECTIONS)
    for name in PROFILES:
        for split in ("train", "test"):
            (folder / name / split).mkdir(parents=True)
    for number in range(shapes):
        name = list(PROFILES)[number % len(PROFILES)]
        split = "test" if number // len(PROFILES) % TEST_EVERY == TEST_EVERY - 1 else "train"
        placed = corners[name] * np.random.default_rng((seed, number)).uniform(0.5, 1.5, 3)
        text = head + line % tuple(placed.ravel().tolist()) + tail
        (folder / name / split / f"{name}_{number:08d}.off").write_text(text)


def _turned(profile: NDArray[np.float64], square: bool) -> NDArray[np.float64]:
    """Vertices [rings x SECTIONS, 3]."""
    angles = np.radians(15 + 360 / SECTIONS * np.arange(SECTIONS))
    around = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if square:
        around /= np.abs(around).max(axis=1, keepdims=True)
    wide = profile[:, None, :1] * around
    high = np.broadcast_to(profile[:, None, 1:], (*wide.shape[:2], 1))
    return np.concatenate([wide, high], axis=2).reshape(-1, 3)


def _faces(rings: int) -> list[tuple[int, int, int]]:
    """Two triangles between neighbours on neighbouring rings; those at a tip have no area."""
    found = []
    for ring in range(rings - 1):
        for here in range(SECTIONS):
            a, b = ring * SECTIONS + here, ring * SECTIONS + (here + 1) % SECTIONS
            found += [(a, b, b + SECTIONS), (a, b + SECTIONS, a + SECTIONS)]
    return found
