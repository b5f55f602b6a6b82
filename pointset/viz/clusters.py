"""Pictures of mixtures of Gaussians: elements in the plane coloured by component, components as ellipses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Ellipse
from numpy.typing import NDArray
from torch import Tensor

from pointset.errors import PointsetError, quoted
from pointset.evaluation.mixtures import Mixture, assign, log_likelihood, responsibilities
from pointset.inputs import as_mask, as_points
from pointset.viz.charts import COLORS
from pointset.viz.sheet import FAINT, MARGIN, Picture, Sheet

WIDTH, LARGEST_PANEL, TOP, LABEL, NOTE, GAP = 8.6, 2.1, 0.68, 0.25, 0.2, 0.06
DEVIATIONS = (1, 2)
NEGLIGIBLE = 0.005
"""A component with a smaller proportion is drawn with a thin line."""


def draw_clusters(
    X: Any, mixtures: Mapping[str, Mixture], *, mask: Any = None, title: str = "Sets and their mixtures"
) -> Picture:
    """Draw sets side by side, with one line of panels for each label in `mixtures`.

    An element has the colour of its most likely component; a component has ellipses at one and two standard deviations.
    Components have no order, so those of later lines get the colours of the components of the first line with which
    they share most elements. The number below each panel is the log-likelihood per datum.

    Args:
        X: [B, n, 2], the sets.
        mixtures: for each label, a `pointset.evaluation.mixtures.Mixture` of these sets, such as {"truth": ...,
            "model": ..., "after one EM step": ...}.
        mask: [B, n], True at real elements.
        title: title of the picture.

    Raises:
        PointsetError: the sets are not [B, n, 2], there is no mixture, or one is of other sets or has more components
            than there are colours.

    Example:
        >>> from pointset.evaluation.mixtures import draw_elements, draw_mixtures
        >>> generator = torch.Generator().manual_seed(0)
        >>> truth = draw_mixtures(2, generator)
        >>> elements, _ = draw_elements(truth, 100, generator)
        >>> len(pointset.viz.draw_clusters(elements, {"truth": truth}).axes) >= 2
        True
    """
    X = as_points(X, 2, None)
    mask = as_mask(mask, X)
    keep = torch.ones(X.shape[:-1], dtype=torch.bool) if mask is None else mask
    _check(X, mixtures)
    side = min((WIDTH - 2 * MARGIN - LABEL) / len(X) - GAP, LARGEST_PANEL)
    line = side + NOTE + GAP
    sheet = Sheet(2 * MARGIN + LABEL + len(X) * (side + GAP), TOP + len(mixtures) * line + MARGIN / 2)
    sheet.heading(title, "colour: most likely component; ellipses: 1 and 2 deviations; below: log-likelihood per datum")
    half = 1.04 * float(X[keep].abs().max()) if keep.any() else 1.0
    first = next(iter(mixtures.values()))
    for row, (label, mixture) in enumerate(mixtures.items()):
        top = TOP + row * line
        sheet.text(MARGIN, top + side / 2, label, 8.5, rotation=90, va="center", color=FAINT)
        likelihoods = log_likelihood(X, mixture, keep)
        for b in range(len(X)):
            left = MARGIN + LABEL + b * (side + GAP)
            own, elements = mixture[b : b + 1], X[b, keep[b]]
            axes = sheet.square(left, top, side, -half, half)
            _draw_set(axes, elements, own, _matched(elements, own, first[b : b + 1]))
            sheet.text(left + side / 2, top + side + 0.03, f"{likelihoods[b]:.2f}", 7.5, ha="center", color=FAINT)
    return sheet.picture


def _check(X: Tensor, mixtures: Mapping[str, Mixture]) -> None:
    if X.dim() != 3 or X.shape[2] != 2 or not len(X):
        raise PointsetError(f"sets in the plane are [B, n, 2], got {list(X.shape)}: give at least one such set")
    if not mixtures:
        raise PointsetError("mixtures must contain at least one mixture, got none")
    for name, mixture in mixtures.items():
        sets, components, width = mixture.means.shape
        if sets != len(X) or width != 2 or components > len(COLORS):
            raise PointsetError(
                f"mixture {quoted(name)} has means {[sets, components, width]}: they must be [{len(X)}, k, 2], with at "
                f"most {len(COLORS)} components k"
            )


def _matched(X: Tensor, mixture: Mixture, reference: Mixture) -> NDArray[np.int64]:
    """The component of the reference with which each component shares most elements, one to one."""
    from scipy.optimize import linear_sum_assignment

    shared = responsibilities(X[None], mixture)[0].T @ responsibilities(X[None], reference)[0]  # [k, k of reference]
    rows, columns = linear_sum_assignment(shared.double().numpy(), maximize=True)
    matched = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    free = iter(sorted(set(range(len(COLORS))) - set(matched.values())))
    return np.array([matched[row] if row in matched else next(free) for row in range(len(shared))])


def _draw_set(axes: Axes, X: Tensor, mixture: Mixture, colors: NDArray[np.int64]) -> None:
    chosen = colors[assign(X[None], mixture)[0].numpy()]
    darker = [tuple(0.6 * level for level in to_rgb(color)) for color in COLORS]
    x, y = X.T.numpy()
    axes.scatter(x, y, s=3, c=[COLORS[color] for color in chosen], alpha=0.4, linewidths=0, rasterized=True)
    proportions = mixture.log_proportions[0].exp().tolist()
    for j, (mean, scale) in enumerate(zip(mixture.means[0].tolist(), mixture.scales[0].tolist(), strict=True)):
        width = 0.4 if proportions[j] < NEGLIGIBLE else 1.0
        for deviations in DEVIATIONS:
            size = [2 * deviations * sigma for sigma in scale]
            axes.add_patch(Ellipse(mean, *size, fill=False, edgecolor=darker[colors[j]], linewidth=width))
