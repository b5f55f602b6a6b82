"""Facts about the fixture `reported`, shared by the tests of a report."""

from pathlib import Path

from pointset.comparison.results import Comparison

ODD = "ISAB & PMA <4>"
"""The third model of the fixture `reported`."""
CHARTS = ("pareto", "learning-curves", "reliability", "confusion")
TILES = "confusions"


def sections_of() -> list[tuple[str, str]]:
    """Titles and names of all sections."""
    sections = {
        "Which models are distinguishable": "",
        "Accuracy against cost": CHARTS[0],
        "Learning curves": CHARTS[1],
        "Corrupted and smaller test sets": "",
        "Calibration": CHARTS[2],
        "Confusion matrices": CHARTS[3],
        "The most frequent confusions": TILES,
        "Accuracy of every class": "",
    }
    return [
        (f"{title}, {points} points", f"{name}-n{points}" if name else "")
        for points in (24, 12)
        for title, name in sections.items()
    ]


def is_chart(name: str) -> bool:
    return name.rpartition("-n")[0] in CHARTS


def content_of(comparison: Comparison, label: str, points: int, seed: int, name: str) -> Path:
    return comparison.run(label, seed, points).folder / name
