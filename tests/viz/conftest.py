"""Shared by the tests of pictures: a cloud with known attention, and a page in a browser."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from pointset.explain.maps import AttentionMap

HEADS, ROWS, POINTS = 2, 3, 150
SIDES = {"reads": "keys", "pools": "keys", "writes": "queries", "self": "both"}


@pytest.fixture(scope="session")
def cloud() -> NDArray[np.float64]:
    """Points in a box that is 1 wide, 0.6 deep and 2 high."""
    return np.random.default_rng(0).uniform(-1, 1, size=(POINTS, 3)) * (0.5, 0.3, 1.0)


@pytest.fixture(scope="session")
def attention(cloud: NDArray[np.float64]) -> Callable[..., AttentionMap]:
    """Make a map of a given kind on the cloud, in which each row of each head attends to another region."""

    def make(kind: str = "reads", layer: str = "encoder.0", rows: int = ROWS, seed: int = 1) -> AttentionMap:
        places = np.random.default_rng(seed).uniform(-1, 1, size=(HEADS, rows, 1, 3)) * (0.5, 0.3, 1.0)
        if kind == "self":
            places = np.broadcast_to(cloud[None, :, None], (HEADS, POINTS, 1, 3))
        logits = -8 * ((places - cloud) ** 2).sum(axis=-1)
        if kind == "writes":
            logits = logits.swapaxes(1, 2)
        weights = np.exp(logits)
        weights /= weights.sum(axis=2, keepdims=True)
        return AttentionMap(f"{layer}.{kind}", kind, torch.from_numpy(weights), SIDES[kind])

    return make
