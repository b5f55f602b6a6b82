"""Scatter plots: predictions against truth, mixtures of Gaussians, measures of inducing points."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Ellipse
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from pointset.errors import PointsetError, quoted
from pointset.inputs import as_points
from pointset.viz.charts import WIDTH, Picture, label_axes, make_panels, plain_label, shorten, with_legend
from pointset.viz.color import COLORS, FAINT, INK
from pointset.viz.rows import finite_numbers


class Mixture(Protocol):
    """Mixtures of Gaussians, one for each set; see `pointset.tasks.mixtures.Mixture`."""

    log_proportions: Tensor
    means: Tensor
    scales: Tensor

    def __getitem__(self, sets: slice) -> Mixture: ...
    def log_joint(self, X: Tensor) -> Tensor:
        """Of every element and component, [B, n, k]."""

    def log_likelihood(self, X: Tensor) -> Tensor:
        """The mean over the elements of each set, [B]."""

    def responsibilities(self, X: Tensor) -> Tensor:
        """Of the components for every element, [B, n, k]."""


NEGLIGIBLE = 0.005
"""A component with a smaller proportion is drawn with a thin line."""


def draw_predictions(
    truth: Any, predictions: Mapping[str, Any], *, quantity: str = "value", title: str = "Predicted against true"
) -> Picture:
    """Draw one panel per model with equal axes: one dot per set, and the line of exact predictions.

    Args:
        truth: [N], the true number of each set.
        predictions: predictions [N] of each model, by its name.
        quantity: name of the number, for the axes.
        title: title of the picture.

    Raises:
        PointsetError: models or sets are empty, or a model does not have one number per set.
    """
    true = finite_numbers("truth", truth).ravel()
    models = {name: finite_numbers(name, values).ravel() for name, values in predictions.items()}
    if not models or not len(true):
        raise PointsetError(f"give at least one set and one model, got {len(true)} sets and {len(models)} models")
    for name, values in models.items():
        if len(values) != len(true):
            raise PointsetError(f"{quoted(name)} has {len(values)} numbers for {len(true)} sets: give one per set")
    note = f"a dot for each of {len(true):,} sets; line: prediction = truth"
    side = min(WIDTH / len(models), 2.6)
    figure, panels = make_panels(len(models), len(models), side, sharey=True, title=title, note=note)
    everything = np.concatenate([true, *models.values()])
    ends = [float(everything.min()), float(everything.max())]
    room = 0.04 * (ends[1] - ends[0]) or 1.0
    limits = (ends[0] - room, ends[1] + room)
    for number, (axes, (name, values)) in enumerate(zip(panels, models.items(), strict=True)):
        axes.plot(ends, ends, color=INK, linewidth=0.6, zorder=1)
        color = COLORS[number % len(COLORS)]
        axes.scatter(true, values, s=4, color=color, alpha=0.35, linewidths=0, rasterized=True, zorder=2)
        axes.set(xlim=limits, ylim=limits, aspect="equal")
        error = np.abs(values - true).mean()
        axes.set_title(f"{plain_label(shorten(name, side - 0.6, 8))}\nmean error {error:.3g}", fontsize=8)
        label_axes(axes, f"true {quantity}", "" if number else f"predicted {quantity}")
    return figure


def draw_clusters(X: Any, mixtures: Mapping[str, Mixture], *, title: str = "Sets and their mixtures") -> Picture:
    """Draw sets side by side, with one line of panels for each label in `mixtures`.

    An element has the colour of its most likely component; a component has ellipses at one and two standard deviations.
    Components have no order, so those of later lines get the colours of the components of the first line with which
    they share most elements. The number below each panel is the log-likelihood per datum.

    Args:
        X: [B, n, 2], the sets.
        mixtures: for each label, a `pointset.tasks.mixtures.Mixture` of these sets, such as {"truth": ...,
            "model": ..., "after one EM step": ...}.
        title: title of the picture.

    Raises:
        PointsetError: the sets are not [B, n, 2], mixtures is empty, or a mixture is of other sets or has more
            components than colours exist.
    """
    X = as_points(X, 2, None)
    _check(X, mixtures)
    note = "colour: most likely component; ellipses: 1 and 2 deviations; below: log-likelihood per datum"
    side = min(WIDTH / len(X), 2.1)
    figure, panels = make_panels(len(mixtures) * len(X), len(X), side, title=title, note=note)
    half = 1.04 * float(X.abs().max())
    first = next(iter(mixtures.values()))
    free = iter(panels)
    for label, mixture in mixtures.items():
        for b, likelihood in enumerate(mixture.log_likelihood(X).tolist()):
            axes = next(free)
            own = mixture[b : b + 1]
            axes.set(xlim=(-half, half), ylim=(-half, half), xticks=[], yticks=[], aspect="equal")
            axes.spines[:].set(color="#d0d0d0", linewidth=0.6)
            axes.set_ylabel("" if b else plain_label(label), fontsize=8.5, color=FAINT)
            axes.set_xlabel(f"{likelihood:.2f}", fontsize=7.5, color=FAINT)
            _draw_set(axes, X[b], own, _matched(X[b], own, first[b : b + 1]))
    return figure


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
    shared = mixture.responsibilities(X[None])[0].T @ reference.responsibilities(X[None])[0]  # [k, k of reference]
    rows, columns = linear_sum_assignment(shared.double().numpy(), maximize=True)
    matched = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    free = iter(sorted(set(range(len(COLORS))) - set(matched.values())))
    return np.array([matched[row] if row in matched else next(free) for row in range(len(shared))])


def _draw_set(axes: Axes, X: Tensor, mixture: Mixture, colors: NDArray[np.int64]) -> None:
    chosen = colors[mixture.log_joint(X[None]).argmax(dim=2)[0].numpy()]
    darker = [tuple(0.6 * level for level in to_rgb(color)) for color in COLORS]
    x, y = X.T.numpy()
    axes.scatter(x, y, s=3, c=[COLORS[color] for color in chosen], alpha=0.4, linewidths=0, rasterized=True)
    proportions = mixture.log_proportions[0].exp().tolist()
    for j, (mean, scale) in enumerate(zip(mixture.means[0].tolist(), mixture.scales[0].tolist(), strict=True)):
        width = 0.4 if proportions[j] < NEGLIGIBLE else 1.0
        for deviations in (1, 2):
            size = [2 * deviations * sigma for sigma in scale]
            axes.add_patch(Ellipse(mean, *size, fill=False, edgecolor=darker[colors[j]], linewidth=width))


def draw_specialisation(
    trained: Mapping[str, Any],
    control: Mapping[str, Any],
    *,
    descriptions: Mapping[str, str] | None = None,
    title: str = "Do inducing points specialise?",
) -> Picture:
    """Draw measures of each head and inducing point, for a trained and an untrained model.

    Args:
        trained: values [heads, inducing points] (or a vector) of each measure, by name.
        control: the same measures of the untrained model.
        descriptions: the meaning of measures, such as {"entropy": "1 = reads all points alike"}.
        title: title of the picture.

    Raises:
        PointsetError: the two do not have the same measures, or no measures.
    """
    if not trained or set(trained) != set(control):
        names = f"{', '.join(trained) or 'none'} and {', '.join(control) or 'none'}"
        raise PointsetError(f"trained and control must have the same measures, at least one, got {names}")
    note = "one dot per head (colour) and inducing point; bar: median"
    figure, panels = make_panels(len(trained), len(trained), 3.0, title=title, note=note)
    heads = 1
    for axes, name in zip(panels, trained, strict=True):
        pair = [np.atleast_2d(np.asarray(values[name], dtype=np.float64)) for values in (trained, control)]
        heads = max(heads, *(len(values) for values in pair))
        _draw_measure(axes, pair)
        description = textwrap.fill((descriptions or {}).get(name, ""), 95 // len(trained))
        axes.set_title(f"{name}\n{description}", fontsize=8)
    if heads > 1:
        marker = {"marker": "o", "ls": "", "markersize": 4}
        with_legend(figure, {f"head {head}": {"color": COLORS[head % len(COLORS)], **marker} for head in range(heads)})
    return figure


def _draw_measure(axes: Axes, pair: list[NDArray[np.float64]]) -> None:
    for x, values in enumerate(pair):
        head = np.arange(len(values))[:, None] + np.zeros(values.shape, dtype=int)
        # Multiples of the golden ratio spread the dots of a column evenly, without randomness.
        offsets = ((np.arange(values.size) * 0.618034) % 1 - 0.5) * 0.55
        colors = [COLORS[h % len(COLORS)] for h in head.ravel()]
        axes.scatter(x + offsets, values.ravel(), s=13, c=colors, alpha=0.75, linewidths=0)
        axes.plot([x - 0.38, x + 0.38], [float(np.nanmedian(values))] * 2, color=INK, linewidth=1.6)
    everything = np.concatenate([values.ravel() for values in pair])
    if np.nanmin(everything) >= 0 and np.nanmax(everything) <= 1:
        axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(-0.6, 1.6)
    label_axes(axes, "", "")
    axes.set_xticks([0, 1], ["trained", "untrained"], fontsize=8)
    axes.grid(visible=False, axis="x")
