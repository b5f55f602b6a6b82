"""The chart of how rows learn: means over seeds, published figures beside them, heights that fit."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from pointset.comparison.experiment import Entry, Published
from pointset.tasks import TaskComparison, TaskExperiment
from pointset.tasks.curves import draw_curves
from pointset.tasks.experiment import task_recipe
from pointset.tasks.jobs import TaskCell

LOSSES = {("rFF + max", 0): [900.0, 4.0, 3.0, 2.0, 1.0], ("rFF + max", 4): [700.0, 6.0, 5.0, 4.0, 1.5]}
LOSSES |= {("SAB + PMA", seed): [8.0, 7.0, 6.0, 5.0, 4.0] for seed in (0, 4)}


class Known(TaskComparison):
    """A comparison whose histories need no runs."""

    def history(self, label: str, seed: int) -> list[dict[str, float]]:
        return [{"loss": loss, "MAE": 2 * loss} for loss in LOSSES[label, seed]]


def comparison(published: Mapping[str, float], labels: Sequence[str] = ("rFF + max", "SAB + PMA")) -> Known:
    experiment = TaskExperiment(
        task="max-regression",
        models=tuple(Entry.of(label) for label in labels),
        seeds=(0, 4),
        recipe=task_recipe(steps=4500),
        published={label: {"MAE": Published(mean, 0.0, 1)} for label, mean in published.items()},
    )
    cells = [TaskCell(label, seed, {"MAE": 1.0}, 7, 2.0, 4500) for label in labels for seed in (0, 4)]
    return Known(experiment, cells, [], Path("nowhere"))


def test_means_over_seeds_against_steps_with_what_is_published() -> None:
    losses, errors = draw_curves(comparison({"SAB + PMA": 0.25})).axes
    first, second = losses.lines
    np.testing.assert_array_equal(first.get_xdata(), [1000, 2000, 3000, 4000, 4500])
    np.testing.assert_array_equal(first.get_ydata(), [800.0, 5.0, 4.0, 3.0, 1.25])
    np.testing.assert_array_equal(second.get_ydata(), [8.0, 7.0, 6.0, 5.0, 4.0])
    assert len(errors.lines) == 3
    np.testing.assert_array_equal(errors.lines[0].get_ydata(), [1600.0, 10.0, 8.0, 6.0, 2.5])
    dash = errors.lines[2]
    np.testing.assert_array_equal(dash.get_ydata(), [0.25, 0.25])
    assert dash.get_color() == errors.lines[1].get_color() != errors.lines[0].get_color()


def test_the_start_may_leave_the_panel_but_nothing_else() -> None:
    losses, errors = draw_curves(comparison({"SAB + PMA": 0.25})).axes
    assert 7.0 < losses.get_ylim()[1] < 8.0
    assert losses.get_ylim()[0] < 1.25
    assert errors.get_ylim()[0] < 0.25


@pytest.mark.parametrize(("published", "explained"), [({"SAB + PMA": 0.25}, True), ({}, False)])
def test_the_legend(published: Mapping[str, float], explained: bool) -> None:
    (legend,) = draw_curves(comparison(published)).legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["rFF + max", "SAB + PMA", *["dash: published"] * explained]


def test_a_row_has_its_colour_whatever_else_is_there() -> None:
    both, alone = comparison({}), comparison({})
    alone.cells[:] = [cell for cell in alone.cells if cell.model == "SAB + PMA"]
    assert draw_curves(alone).axes[0].lines[0].get_color() == draw_curves(both).axes[0].lines[1].get_color()
