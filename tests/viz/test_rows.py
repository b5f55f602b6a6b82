"""Values that are drawn equal those of the maps, with 1 for uniform attention."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import entropy

from pointset.errors import PointsetError
from pointset.viz.rows import PointRows, as_cloud, chosen_rows, point_rows


def rows_of(weights: NDArray[np.float64], cloud: NDArray[np.float64], kind: str = "reads") -> PointRows:
    side = "queries" if kind == "writes" else "keys"
    return point_rows(SimpleNamespace(layer="l", kind=kind, weights=weights, points_are=side), cloud)


def test_uniform_attention_is_one_everywhere(cloud: NDArray[np.float64]) -> None:
    n = len(cloud)
    for kind, shape in (("reads", (2, 3, n)), ("writes", (2, n, 3)), ("pools", (2, 1, n))):
        rows = rows_of(np.full(shape, 1 / shape[2]), cloud, kind)
        np.testing.assert_allclose(rows.values, 1.0)
        np.testing.assert_allclose(rows.spread, 1.0)
        assert rows.keys == shape[2]
        assert rows.values.shape == (2, 1 if kind == "pools" else 3, n)


def test_values_and_spread_are_those_of_the_map(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads, writes = attention("reads"), attention("writes")
    assert point_rows(writes, cloud).values[1, 2, 17] == pytest.approx(3 * writes.weights[1, 17, 2])
    rows = point_rows(reads, cloud)
    np.testing.assert_allclose(rows.spread, entropy(reads.weights, axis=2) / np.log(len(cloud)))
    tensors = SimpleNamespace(**{**vars(reads), "weights": torch.from_numpy(reads.weights)})
    np.testing.assert_array_equal(
        point_rows(tensors, as_cloud(torch.from_numpy(cloud).requires_grad_())).values, rows.values
    )
    one_point = np.zeros((1, 1, len(cloud)))
    one_point[0, 0, 5] = 1
    assert f"{rows_of(one_point, cloud).spread[0, 0]:.2f}" == "0.00"  # and not -0.00, in a picture


def test_maps_that_differ_and_maps_that_do_not(cloud: NDArray[np.float64]) -> None:
    apart = np.zeros((2, 3, len(cloud)))
    for row in range(3):
        apart[0, row, 10 * row : 10 * row + 10] = 0.1  # no two rows look at a common point
        apart[1, row, : 10 * row + 10] = 1 / (10 * row + 10)
    rows = rows_of(apart, cloud)
    between = (1 / 2 + 2 / 3 + 1 / 3) / 3  # total variation of uniform rows over 10, 20 and 30 points
    np.testing.assert_allclose(rows.difference([0, 1, 2]), [1, between])
    np.testing.assert_allclose(rows.difference([1, 1]), [0, 0])
    assert np.isnan(rows.difference([0])).all()


def test_distant_points_are_chosen_if_queries_are_points(attention: Callable, cloud: NDArray[np.float64]) -> None:
    rows = point_rows(attention("self"), cloud)
    chosen = chosen_rows(rows, cloud, None, 8)
    gaps = np.linalg.norm(cloud[chosen][:, None] - cloud[chosen], axis=2)[~np.eye(8, dtype=bool)]
    assert len(chosen) == 8
    assert gaps.min() > 0.6
    assert chosen_rows(rows, cloud, [4, 2], 8) == [4, 2]
    assert chosen_rows(point_rows(attention("reads"), cloud), cloud, None, 8) == [0, 1, 2]


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.zeros((4, 2)), r"one cloud \[n, 3\], got \[4, 2\]"),
        (np.zeros((2, 4, 3)), r"got \[2, 4, 3\]"),
        (np.zeros((0, 3)), "no points"),
        (np.array([[0.0, 0, 0], [0, np.nan, 0]]), "point 1 .* not finite"),
        ("points", r"\[n, 3\].* numbers, got str"),
    ],
)
def test_wrong_clouds_are_named(points: Any, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        as_cloud(points)


def test_heads_and_rows_that_a_map_does_not_have_are_an_error(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads = attention("reads")
    rows = point_rows(reads, cloud)
    for wrong, words in (
        (lambda: point_rows(5, cloud), "attention map.*got int"),
        (lambda: point_rows(reads, cloud[:-1]), "weights for 150 points, but 149"),
        (lambda: point_rows(SimpleNamespace(**{**vars(reads), "points_are": "neither"}), cloud), "pooled vectors"),
        (lambda: rows_of(np.ones(3), cloud), r"got \[3\]"),
        (lambda: rows.check(2, 0), "no head 2: give one from 0 to 1"),
        (lambda: rows.check(0, -1), "no inducing point -1: give one from 0 to 2"),
        (lambda: rows.chosen_heads([]), "heads of .* are empty"),
        (lambda: chosen_rows(rows, cloud, [], 8), "queries of .* inducing points from 0 to 2"),
        (lambda: chosen_rows(rows, cloud, [3], 8), "no inducing point 3"),
    ):
        with pytest.raises(PointsetError, match=words):
            wrong()
