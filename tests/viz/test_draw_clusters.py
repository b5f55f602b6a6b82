"""Pictures of mixtures: panels, ellipses at the components, and equal colours for matching components."""

import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgb
from matplotlib.patches import Ellipse

from pointset.errors import PointsetError
from pointset.tasks.mixtures import Mixture, draw_elements
from pointset.viz import draw_clusters
from pointset.viz.color import COLORS

TRUTH = Mixture(
    torch.tensor([[0.5, 0.3, 0.2]]).log().expand(2, 3),
    torch.tensor([[[-3.0, 0.0], [3.0, 0.0], [0.0, 3.0]], [[0.0, -3.0], [1.0, 2.0], [-2.0, 1.0]]]),
    torch.tensor([[0.2, 0.4], [0.3, 0.3], [0.1, 0.5]]).expand(2, 3, 2),
)
X = draw_elements(TRUTH, 50, torch.Generator().manual_seed(0))[0]
ORDER = [2, 0, 1]
MOVED = Mixture(TRUTH.log_proportions[:, ORDER], TRUTH.means[:, ORDER] + 0.1, TRUTH.scales[:, ORDER])


def ellipses(axes):
    return [patch for patch in axes.patches if isinstance(patch, Ellipse)]


def test_a_line_of_panels_for_each_mixture_in_one_frame():
    picture = draw_clusters(X, {"truth": TRUTH, "model": MOVED}, title="A title")
    assert len(picture.axes) == 4
    assert len({axes.get_xlim() + axes.get_ylim() for axes in picture.axes}) == 1
    texts = [text.get_text() for text in picture.texts]
    assert "A title" in texts
    assert "truth" in texts
    assert "model" in texts
    for mixture in (TRUTH, MOVED):
        for value in mixture.log_likelihood(X).tolist():
            assert f"{value:.2f}" in texts


def test_ellipses_lie_at_one_and_two_deviations():
    axes = draw_clusters(X, {"truth": TRUTH}).axes[1]
    drawn = [(*patch.get_center(), patch.get_width(), patch.get_height()) for patch in ellipses(axes)]
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
    mask = torch.arange(50).expand(2, -1) < torch.tensor([[50], [20]])
    drawn = [len(axes.collections[0].get_offsets()) for axes in draw_clusters(X, {"truth": TRUTH}, mask=mask).axes]
    assert drawn == [50, 20], "padding is not drawn"


def test_the_same_cluster_has_the_same_colour_whatever_its_number():
    first, second = (draw_clusters(X, {"truth": TRUTH, "model": MOVED}).axes[place] for place in (0, 2))
    np.testing.assert_allclose(first.collections[0].get_facecolors(), second.collections[0].get_facecolors())
    centers = {patch.get_edgecolor(): np.round(patch.get_center(), 5) for patch in ellipses(first)}
    for patch in ellipses(second):
        np.testing.assert_allclose(patch.get_center(), centers[patch.get_edgecolor()] + 0.1, atol=1e-5)


def test_mixtures_of_other_sizes_than_the_first_get_colours_of_their_own():
    more = Mixture(
        torch.full((2, 5), 0.2).log(),
        torch.cat([MOVED.means, torch.zeros(2, 2, 2)], dim=1),
        torch.cat([MOVED.scales, torch.ones(2, 2, 2)], dim=1),
    )
    axes = draw_clusters(X, {"truth": TRUTH, "more": more}).axes[2]
    assert len({patch.get_edgecolor() for patch in ellipses(axes)}) == 5
    axes = draw_clusters(X, {"more": more, "truth": TRUTH}).axes[2]
    assert len({patch.get_edgecolor() for patch in ellipses(axes)}) == 3


WRONG = {
    r"\[B, n, 2\], got float32 \[2, 50, 3\]": (torch.zeros(2, 50, 3), {"truth": TRUTH}),
    r"sets in the plane are \[B, n, 2\], got \[0, 50, 2\]": (X[:0], {"truth": TRUTH[:0]}),
    "mixtures must contain at least one mixture": (X, {}),
    r"mixture 'one' has means \[1, 3, 2\]: they must be \[2, k, 2\]": (X, {"one": TRUTH[:1]}),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_drawn_is_refused(message):
    sets, mixtures = WRONG[message]
    with pytest.raises(PointsetError, match=message):
        draw_clusters(sets, mixtures)
