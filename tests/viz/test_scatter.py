"""Scatter plots: predictions on equal axes, mixtures in matching colours, measures of inducing points."""

import re

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb

from pointset.errors import PointsetError
from pointset.tasks.mixtures import Mixture, draw_elements
from pointset.viz import draw_clusters, draw_predictions, draw_specialisation
from pointset.viz.color import COLORS

NUMBERS = np.array([1.0, 4.0, 9.0])
PREDICTIONS = {"good": [1.0, 4.0, 9.5], "bad": [3.0, 3.0, 30.0], "x" * 120: [[0.0], [0.0], [0.0]]}


def test_a_panel_for_each_model_on_the_same_axes():
    picture = draw_predictions(NUMBERS, PREDICTIONS, quantity="maximum", title="A title")
    assert len({axes.get_xlim() + axes.get_ylim() for axes in picture.axes}) == 1
    low, high = picture.axes[0].get_xlim()
    assert low < 0 < 30 < high
    for axes, values in zip(picture.axes, PREDICTIONS.values(), strict=True):
        np.testing.assert_allclose(axes.collections[0].get_offsets(), np.column_stack([NUMBERS, np.ravel(values)]))
        assert axes.get_xlabel() == "true maximum"
    assert picture.get_suptitle() == "A title"
    assert picture.get_supxlabel() == "a dot for each of 3 sets; line: prediction = truth"
    titles = [axes.get_title() for axes in picture.axes]
    assert titles[:2] == ["good\nmean error 0.167", "bad\nmean error 8"]
    assert re.fullmatch(r"x+…x+\nmean error 4.67", titles[2])
    picture.draw_without_rendering()
    assert picture.axes[2].title.get_window_extent().x1 <= picture.bbox.x1


TRUTH = Mixture(
    torch.tensor([[0.5, 0.3, 0.2]]).log().expand(2, 3),
    torch.tensor([[[-3.0, 0.0], [3.0, 0.0], [0.0, 3.0]], [[0.0, -3.0], [1.0, 2.0], [-2.0, 1.0]]]),
    torch.tensor([[0.2, 0.4], [0.3, 0.3], [0.1, 0.5]]).expand(2, 3, 2),
)
X = draw_elements(TRUTH, 50, torch.Generator().manual_seed(0))[0]
ORDER = [2, 0, 1]
MOVED = Mixture(TRUTH.log_proportions[:, ORDER], TRUTH.means[:, ORDER] + 0.1, TRUTH.scales[:, ORDER])


def test_a_line_of_panels_for_each_mixture_in_one_frame():
    picture = draw_clusters(X, {"truth": TRUTH, "model": MOVED}, title="A title")
    assert len(picture.axes) == 4
    assert len({axes.get_xlim() + axes.get_ylim() for axes in picture.axes}) == 1
    assert picture.get_suptitle() == "A title"
    assert [axes.get_ylabel() for axes in picture.axes] == ["truth", "", "model", ""]
    likelihoods = [value for mixture in (TRUTH, MOVED) for value in mixture.log_likelihood(X).tolist()]
    assert [axes.get_xlabel() for axes in picture.axes] == [f"{value:.2f}" for value in likelihoods]


def test_ellipses_lie_at_one_and_two_deviations():
    axes = draw_clusters(X, {"truth": TRUTH}).axes[1]
    drawn = [(*patch.get_center(), patch.get_width(), patch.get_height()) for patch in axes.patches]
    expected = [
        (*mean, 2 * deviations * scale[0], 2 * deviations * scale[1])
        for mean, scale in zip(TRUTH.means[1].tolist(), TRUTH.scales[1].tolist(), strict=True)
        for deviations in (1, 2)
    ]
    np.testing.assert_allclose(drawn, expected, rtol=1e-6)


def test_every_element_is_drawn_in_the_colour_of_its_component():
    axes = draw_clusters(X, {"truth": TRUTH}).axes[0]
    places, colors = axes.collections[0].get_offsets(), axes.collections[0].get_facecolors()
    np.testing.assert_allclose(places, X[0])
    nearest = torch.cdist(X[0], TRUTH.means[0]).argmin(dim=1)
    np.testing.assert_allclose(colors[:, :3], [to_rgb(COLORS[j]) for j in nearest])


def test_the_same_cluster_has_the_same_colour_whatever_its_number():
    first, second = (draw_clusters(X, {"truth": TRUTH, "model": MOVED}).axes[place] for place in (0, 2))
    np.testing.assert_allclose(first.collections[0].get_facecolors(), second.collections[0].get_facecolors())
    centers = {patch.get_edgecolor(): np.round(patch.get_center(), 5) for patch in first.patches}
    for patch in second.patches:
        np.testing.assert_allclose(patch.get_center(), centers[patch.get_edgecolor()] + 0.1, atol=1e-5)


@pytest.mark.parametrize(
    ("draw", "sets", "others", "words"),
    [
        (draw_predictions, NUMBERS, {}, "3 sets and 0 models"),
        (draw_predictions, [], {"mine": []}, "0 sets and 1 models"),
        (draw_predictions, NUMBERS, {"mine": [1.0, 2.0]}, "'mine' has 2 numbers for 3 sets"),
        (draw_clusters, torch.zeros(2, 50, 3), {"truth": TRUTH}, r"\[B, n, 2\], got float32 \[2, 50, 3\]"),
        (draw_clusters, X[:0], {"truth": TRUTH[:0]}, r"\[B, n, 2\], got \[0, 50, 2\]"),
        (draw_clusters, X, {}, "mixtures"),
        (draw_clusters, X, {"one": TRUTH[:1]}, r"'one' has means \[1, 3, 2\].*\[2, k, 2\]"),
        (draw_specialisation, {}, {}, "must have the same measures"),
        (draw_specialisation, {"entropy": 1}, {}, "must have the same measures"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, sets, others, words):
    with pytest.raises(PointsetError, match=words):
        draw(sets, others)


def test_specialisation_beside_its_control():
    rng = np.random.default_rng(0)
    trained = {"entropy": rng.uniform(0.2, 0.6, (4, 16)), "overlap": rng.uniform(size=(4, 16))}
    control = {name: np.ones((4, 16)) for name in trained}
    picture = draw_specialisation(trained, control, descriptions={"entropy": "1 = reads all alike"})
    assert len(picture.axes) == 2
    for axes, name in zip(picture.axes, trained, strict=True):
        left, right = (collection.get_offsets() for collection in axes.collections)
        np.testing.assert_allclose(left[:, 1], trained[name].ravel())
        np.testing.assert_allclose(right[:, 1], 1)
        assert left[:, 0].max() < 0.5 < right[:, 0].min()
    assert picture.axes[0].get_title() == "entropy\n1 = reads all alike"
    assert [text.get_text() for text in picture.legends[0].get_texts()] == [f"head {head}" for head in range(4)]
