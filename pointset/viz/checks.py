"""Deletion and insertion curves of explanations, as lines for a page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pointset.explain.faithfulness import SHARES, Curves
from pointset.viz.color import COLORS

WIDTH, HEIGHT = 240, 120
"""Size of a panel, in the units of its SVG."""


def check_panels(checks: Mapping[str, Curves]) -> list[dict[str, Any]]:
    """The panels "deletion" and "insertion": for each explanation a name, a colour, an area and the points of its line.

    Curves that are missing get no panel.

    Args:
        checks: curves by explanation, as `check_explanations` gives them; the mean over shapes is drawn.
    """
    return [
        {
            "title": title,
            "lines": [
                {
                    "name": name,
                    "color": "#888888" if name == "random" else COLORS[index % len(COLORS)],
                    "area": f"{100 * curves.areas[title].mean():.0f} %",
                    "points": _polyline(getattr(curves, title).mean(axis=0)),
                }
                for index, (name, curves) in enumerate(checks.items())
            ],
        }
        for title in ("deletion", "insertion")
        if checks
    ]


def _polyline(probabilities: Any) -> str:
    pairs = zip(SHARES, probabilities.tolist(), strict=True)
    return " ".join(f"{share * WIDTH:.1f},{(1 - probability) * HEIGHT:.1f}" for share, probability in pairs)
