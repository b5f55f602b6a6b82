"""A picture of all pairs of models of a verdict: differences, and which of them are distinguishable."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from pointset.comparison.pairs import Pair
from pointset.comparison.verdict import Verdict
from pointset.viz.charts import make_panels, plain_label, shorten
from pointset.viz.color import COLORS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_SHOWN = 20
"""Models of a picture, best first; the table has all."""
NAME_WIDTH = 1.3
"""Width of a name in inches."""


def draw_matrix(verdict: Verdict) -> Figure | None:
    """Differences of all pairs of the best models, row minus column, as a multiple comparison matrix.

    Ismail-Fawaz et al., "An approach to multiple comparison benchmark evaluations" (arXiv 2305.11921). Blue: the row is
    distinguishably better; orange: worse. Of several data sets, each cell has in how many the row is better, not
    distinguishable, and worse. None for a single model.
    """
    rows = verdict.rows[:MOST_SHOWN]
    if len(rows) < 2:
        return None
    figure, (axes,) = make_panels(1, 1, 0.8 + (0.42 if verdict.parts else 0.3) * len(rows))
    names = [plain_label(shorten(row.model, NAME_WIDTH, 7)) for row in rows]
    for y, first in enumerate(rows):
        for x, second in enumerate(rows):
            if x != y:
                _draw_cell(axes, x, y, verdict, verdict.pair(first.model, second.model))
    axes.set(xlim=(-0.5, len(rows) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    means = [verdict.metric.write(row.mean) for row in rows]
    axes.set_yticks(range(len(rows)), [f"{name}  {mean}" for name, mean in zip(names, means, strict=True)])
    axes.set_xticks(range(len(rows)), names, rotation=40, ha="left", rotation_mode="anchor")
    axes.tick_params(length=0, labelsize=7, top=True, labeltop=True, bottom=False, labelbottom=False)
    axes.spines[:].set_visible(False)
    axes.grid(visible=False)
    return figure


def _draw_cell(axes: Axes, x: int, y: int, verdict: Verdict, pair: Pair) -> None:
    text = verdict.metric.write(pair.difference, sign="+").replace("-", "\N{MINUS SIGN}")
    if verdict.parts:
        text += "\n" + "/".join(word.split()[0] for word in verdict.wins(pair).split(", "))
    if pair.distinguishable:
        color = COLORS[0] if verdict.metric.merit(pair.difference) > 0 else COLORS[1]
        axes.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=color, alpha=0.3, lw=0))
    weight, color = ("bold", INK) if pair.distinguishable else ("normal", FAINT)
    axes.text(x, y, text, ha="center", va="center", fontsize=7, weight=weight, color=color)
