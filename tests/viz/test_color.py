"""Colour scales: 1 in the middle, both ends visible on the background, tick labels at their values."""

import numpy as np
import pytest

from pointset.viz.color import attention_ramp, attention_scale, count_scale, reach_of, signed_scale

LUMA = np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("reach", [2.0, 8.0, 64.0])
def test_ticks_stand_at_their_values(reach):
    scale = attention_scale(reach)
    positions, labels = zip(*scale.ticks, strict=True)
    values = [1 / float(text[2:]) if text.startswith("1/") else float(text) for text in labels]
    np.testing.assert_allclose(positions, scale.positions(np.array(values)))
    assert positions[labels.index("1")] == 0.5
    assert len(labels) in (3, 5, 7)
    assert scale.positions(np.array([0.0, 1e-9, 1 / reach, reach, 1e9])).tolist() == [0, 0, 0, 1, 1]


def test_the_reach_is_a_power_of_two_within_bounds():
    uniform, sharp = np.ones(1000), np.r_[np.full(20, 500.0), np.zeros(980)]
    middling = np.r_[np.full(20, 7.0), np.ones(980)]
    assert [reach_of(values) for values in (uniform, sharp, middling)] == [2, 64, 8]


def test_ramps_run_evenly_in_lightness_and_never_into_the_background():
    light, dark = attention_ramp() @ LUMA, attention_ramp(dark=True) @ LUMA
    assert (np.diff(light) <= 1e-3).all()
    assert light.max() < 0.9
    assert 0.15 < dark[0] < 0.35
    assert dark[-1] > 0.7


def test_the_middle_of_a_signed_scale_is_grey_and_its_ends_differ():
    scale, values = signed_scale(0.5), np.array([-0.5, 0.0, 0.5])
    low, middle, high = scale.colors_of(values)
    assert 0.8 < middle.min() <= middle.max() < 0.9
    assert np.ptp(middle) < 0.03
    assert low[2] > low[1]
    assert high[0] > high[2]
    emphasis = scale.emphasis(values)
    assert emphasis[0] == emphasis[2] > 0.5 > emphasis[1]


def test_a_count_of_one_differs_visibly_from_zero():
    scale, values = count_scale(50), np.array([0.0, 1.0])
    none, one = scale.colors_of(values)
    assert abs((none - one) @ LUMA) > 0.15
    assert (scale.emphasis(values) > 0.5).tolist() == [False, True]
    assert [label for _, label in scale.ticks] == ["0", "1", "50"]
    assert [label for _, label in count_scale(1).ticks] == ["0", "1"]
