"""Facts about the fixture `reported`, shared by the tests of a report."""

from collections.abc import Iterator
from pathlib import Path

from pointset.comparison.results import Comparison

ODD = "ISAB & PMA <4>"
"""The third model of the fixture `reported`."""
CHARTS = ("pareto", "learning-curves", "smaller-sets", "robustness", "reliability", "confusion")
TILES = ("confusions",)


def sections_of(comparison: Comparison, sizes: tuple[int, ...] = (24, 12)) -> list[tuple[str, str]]:
    """Titles and names of all sections for these sizes."""
    several = [("Accuracy against the size of a set", "accuracy-by-trained-size")] if len(sizes) > 1 else []
    return several + [
        (f"{title}, {points} points", f"{name}-n{points}" if name else "")
        for points in sizes
        for title, name in _of_one_size()
    ]


def _of_one_size() -> Iterator[tuple[str, str]]:
    titles = (
        "Accuracy against cost",
        "Learning curves",
        "Fewer points at test time",
        "Corrupted test sets",
        "Calibration",
        "Confusion matrices",
    )
    yield "Which models are distinguishable", ""
    yield from zip(titles, CHARTS, strict=True)
    yield "The most frequent confusions", TILES[0]
    yield "Accuracy of every class", ""


def is_chart(name: str) -> bool:
    return name.rpartition("-n")[0] in CHARTS or name == "accuracy-by-trained-size"


def content_of(comparison: Comparison, label: str, points: int, seed: int, name: str) -> Path:
    return comparison.run(label, seed, points).folder / name
