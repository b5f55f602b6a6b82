"""Shared by the tests of pictures: a cloud with known attention, and a page in a browser."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from open_page import Seen

from pointset.explain.maps import AttentionMap
from pointset.viz import make_page

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


@pytest.fixture
def opened(browser: Any, attention: Callable, cloud: Any, tmp_path: Path) -> Iterator[Callable[..., Seen]]:
    """Open a page of three layers from a file, in a new tab."""
    tabs = []

    def open_page(layer: str = "encoder.0.reads", **view: Any) -> Seen:
        maps = [attention("reads"), attention("writes"), attention("reads", "encoder.1", seed=5)]
        classes = [("box", 0.91), ("<b>ball", 0.05), *[(f"other {i}", 0.01) for i in range(4)]]
        page = make_page(maps, cloud, title="A box", prediction="predicted: box", classes=classes, layer=layer)
        seen = Seen(browser.new_page(viewport={"width": 900, "height": 1100}, **view))
        tabs.append(seen.tab)
        seen.open(page.save(tmp_path / "page.html"))
        return seen

    yield open_page
    for tab in tabs:
        tab.close()
