"""What the tests of a report know of the fixture `reported`."""

from pathlib import Path

from pointset.comparison.gathering import Comparison

ODD = "ISAB & PMA <4>"
"""The third model of the fixture `reported`."""

SECTIONS = [
    ("Accuracy against the size of a set", "accuracy-by-trained-size"),
    *(
        (f"{title}, {points} points", f"{name}-n{points}" if name else "")
        for points in (24, 12)
        for title, name in [
            ("Which models can be told apart", ""),
            ("Accuracy against cost", "pareto"),
            ("Learning curves", "learning-curves"),
            ("Fewer points at test time", "smaller-sets"),
            ("Corrupted test sets", "robustness"),
            ("Calibration", "reliability"),
            ("What is taken for what", "confusion"),
        ]
    ),
]


def content_of(comparison: Comparison, label: str, points: int, seed: int, name: str) -> Path:
    return comparison.run(label, seed, points).folder / name
