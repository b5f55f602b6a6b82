"""Colour scales: 1 in the middle, both ends visible on the background, tick labels at their values."""

import numpy as np
import pytest

from pointset.errors import PointsetError
from pointset.viz.color import ColorScale, CountScale, SignedScale, colors_of, ramp, scale_for

LUMA = np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("reach", [2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
def test_ticks_stand_at_their_values(reach: float) -> None:
    scale = ColorScale(reach)
    places, labels = scale.ticks()
    values = [1 / float(text[2:]) if text.startswith("1/") else float(text) for text in labels]
    np.testing.assert_allclose(places, scale.positions(np.array(values)))
    assert places[labels.index("1")] == 0.5
    assert len(labels) in (3, 5, 7)


def test_what_lies_beyond_the_scale_has_the_colour_of_its_end() -> None:
    scale = ColorScale(8.0)
    assert scale.positions(np.array([0.0, 1e-9, 1 / 8, 8.0, 1e9])).tolist() == [0, 0, 0, 1, 1]


def test_the_reach_is_a_power_of_two_within_bounds() -> None:
    uniform, sharp = np.ones(1000), np.r_[np.full(20, 500.0), np.zeros(980)]
    middling = np.r_[np.full(20, 7.0), np.ones(980)]
    assert [scale_for(values).reach for values in (uniform, sharp, middling)] == [2, 64, 8]


@pytest.mark.parametrize("name", ["magma_r", "magma", "viridis", "viridis_r", "cividis", "inferno_r", "plasma"])
def test_ramps_run_evenly_in_lightness_and_never_into_the_paper(name: str) -> None:
    steps = np.diff(ramp(name) @ LUMA)
    assert (steps <= 1e-3).all() or (steps >= -1e-3).all()
    assert (ramp(name) @ LUMA).max() < 0.9
    luma = ramp(name, "dark") @ LUMA
    assert 0.15 < luma[0] < 0.35
    assert luma[-1] > 0.7


def test_the_middle_of_a_signed_scale_is_grey_and_its_ends_differ() -> None:
    scale = SignedScale(0.5)
    low, middle, high = colors_of(scale, np.array([-0.5, 0.0, 0.5]))
    assert 0.8 < middle.min() <= middle.max() < 0.9
    assert np.ptp(middle) < 0.03
    assert low[2] > low[1]
    assert high[0] > high[2]
    assert scale.emphasis(np.array([-0.5])) == scale.emphasis(np.array([0.5])) > 0.5 > scale.emphasis(np.array([0.0]))


def test_a_count_of_one_differs_visibly_from_zero() -> None:
    scale = CountScale(50)
    none, one = colors_of(scale, np.array([0.0, 1.0]))
    assert abs((none - one) @ LUMA) > 0.15
    assert (scale.emphasis(np.array([0.0, 1.0])) > 0.5).tolist() == [False, True]
    assert scale.ticks()[1] == ["0", "1", "50"]
    assert CountScale(1).ticks()[1] == ["0", "1"]


def test_an_unknown_colour_map_lists_good_ones() -> None:
    with pytest.raises(PointsetError, match="'rainbows': try cividis"):
        ramp("rainbows")
