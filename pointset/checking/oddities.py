"""Shapes that are unlike the others of their class: in size, extent, number of points, or the axis that points up."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray

from pointset.baselines.features import ShapeFeatures
from pointset.data.axes import UP_TO_Z

SIZE, COUNT = 8.0, 10.0
"""How many times larger or smaller than the median of its class a shape is odd, in size and in points."""
SPREADS = 6.0
"""And how many times as far, in logs, as half of its class."""
FLAT = 1e-4
"""Smallest by largest extent of a flat shape."""
FARTHEST, TURNED = 0.1, 0.75
"""Share of the shapes, those farthest from their class, of which turns are tried; how much nearer one brings them."""
Oddity = tuple[int, str, str]
"""Index of the shape, kind, and a note."""


def odd_sizes(sizes: Float[ndarray, " N"], labels: Int[ndarray, " N"]) -> Iterator[Oddity]:
    """Shapes of a size far from the median of their class: another unit."""
    for row, times in _unlike_class(sizes, labels, SIZE):
        yield row, "size", f"{times:.3g} times the median of its class: another unit?"


def odd_counts(counts: Int[ndarray, " N"], labels: Int[ndarray, " N"]) -> Iterator[Oddity]:
    """Clouds with far fewer or more points than the median of their class."""
    for row, times in _unlike_class(counts.astype(float), labels, COUNT):
        yield row, "points", f"{counts[row]:,} points, {times:.3g} times the median of its class"


def _unlike_class(values: Float[ndarray, " N"], labels: Int[ndarray, " N"], most: float) -> Iterator[tuple[int, float]]:
    for label in np.unique(labels):
        inside = np.flatnonzero(labels == label)
        logs = np.log(np.maximum(values[inside], 1e-300))
        logs -= np.median(logs)
        limit = max(np.log(most), SPREADS * float(np.median(np.abs(logs))))
        yield from ((int(row), float(np.exp(own))) for row, own in zip(inside, logs, strict=True) if abs(own) > limit)


def odd_extents(clouds: Sequence[Float[ndarray, "n 3"]]) -> Iterator[Oddity]:
    """Shapes that lie in a plane."""
    for row, cloud in enumerate(clouds):
        spread = np.linalg.svd(cloud - cloud.mean(axis=0), compute_uv=False) if len(cloud) > 2 else np.zeros(3)
        if spread[-1] <= FLAT * max(spread[0], 1e-300):
            yield row, "flat", "its points lie in a plane" if spread[0] > 0 else "its points lie at one place"


def odd_axes(
    rows: Float[ndarray, "N width"], labels: Int[ndarray, " N"], cloud: Callable[[int], Float[ndarray, "n 3"]], up: str
) -> Iterator[Oddity]:
    """Shapes that are much nearer to their class after a turn of another axis to the top.

    Args:
        rows: `ShapeFeatures` of the shapes as they lie.
        labels: their classes.
        cloud: the points of a shape, in the axes of its file.
        up: the axis that points up in the files.
    """
    extract, upright = ShapeFeatures(), torch.tensor(UP_TO_Z[up])
    others = [axis for axis in UP_TO_Z if axis != "z"]
    turns = torch.tensor([UP_TO_Z[axis] for axis in others])
    centres = {int(label): np.median(rows[labels == label], axis=0) for label in np.unique(labels)}
    distances = np.array([np.linalg.norm(row - centres[int(label)]) for row, label in zip(rows, labels, strict=True)])
    for row in np.argsort(-distances)[: int(np.ceil(FARTHEST * len(rows)))].tolist():
        points = torch.from_numpy(cloud(row)).float() @ upright.T
        turned = extract(points @ turns.mT).numpy()
        near = np.linalg.norm(turned - centres[int(labels[row])], axis=1)
        if near.min() < TURNED * distances[row]:
            yield row, "upward axis", f"more like its class with {others[int(near.argmin())]} for z: turned?"
