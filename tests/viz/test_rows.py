"""Values that are drawn equal those of the maps, with 1 for uniform attention."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pointset.errors import PointsetError
from pointset.viz.rows import as_cloud, chosen_rows, point_rows

torch = pytest.importorskip("torch")


def test_uniform_attention_is_one_everywhere(cloud: NDArray[np.float64]) -> None:
    n = len(cloud)
    for kind, shape, side in (
        ("reads", (2, 3, n), "keys"),
        ("writes", (2, n, 3), "queries"),
        ("pools", (2, 1, n), "keys"),
    ):
        weights = np.full(shape, 1 / shape[2])
        rows = point_rows(SimpleNamespace(layer="l", kind=kind, weights=weights, points_are=side), cloud)
        np.testing.assert_allclose(rows.values, 1.0)
        np.testing.assert_allclose(rows.spread, 1.0)
        assert rows.keys == shape[2]
        assert rows.values.shape == (2, 1 if kind == "pools" else 3, n)


def test_writes_show_who_reads_an_inducing_point(attention: Callable, cloud: NDArray[np.float64]) -> None:
    writes = attention("writes")
    rows = point_rows(writes, cloud)
    assert rows.values[1, 2, 17] == pytest.approx(3 * writes.weights[1, 17, 2])


def test_spread_is_the_entropy_of_what_is_drawn(attention: Callable, cloud: NDArray[np.float64]) -> None:
    from scipy.stats import entropy

    reads = attention("reads")
    expected = entropy(reads.weights, axis=2) / np.log(len(cloud))
    np.testing.assert_allclose(point_rows(reads, cloud).spread, expected)
    one_point = np.zeros((1, 1, len(cloud)))
    one_point[0, 0, 5] = 1
    single = SimpleNamespace(layer="l", kind="reads", weights=one_point, points_are="keys")
    assert f"{point_rows(single, cloud).spread[0, 0]:.2f}" == "0.00"  # and not -0.00, in a picture


def test_maps_that_differ_and_maps_that_do_not(cloud: NDArray[np.float64]) -> None:
    n = len(cloud)
    apart = np.zeros((2, 3, n))
    for row in range(3):
        apart[0, row, 10 * row : 10 * row + 10] = 0.1  # no two rows look at a common point
        apart[1, row, : 10 * row + 10] = 1 / (10 * row + 10)
    rows = point_rows(SimpleNamespace(layer="l", kind="reads", weights=apart, points_are="keys"), cloud)
    between = (1 / 2 + 2 / 3 + 1 / 3) / 3  # total variation of uniform rows over 10, 20 and 30 points
    np.testing.assert_allclose(rows.difference([0, 1, 2]), [1, between])
    np.testing.assert_allclose(rows.difference([1, 1]), [0, 0])
    assert np.isnan(rows.difference([0])).all()


def test_tensors_serve_as_well_as_arrays(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads = attention("reads")
    twin = SimpleNamespace(**{**vars(reads), "weights": torch.from_numpy(reads.weights)})
    tensor = torch.from_numpy(cloud).requires_grad_()
    np.testing.assert_array_equal(
        point_rows(twin, as_cloud(tensor)).values, point_rows(reads, as_cloud(cloud.tolist())).values
    )


def test_of_a_clouds_points_some_far_from_one_another_are_chosen(
    attention: Callable, cloud: NDArray[np.float64]
) -> None:
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
        (np.array([[np.inf, 0, 0]]), "point 0 .* not finite"),
    ],
)
def test_wrong_clouds_are_named(points: Any, words: str) -> None:
    with pytest.raises(PointsetError, match=words):
        as_cloud(points)


def test_heads_and_rows_that_a_map_does_not_have_are_an_error(attention: Callable, cloud: NDArray[np.float64]) -> None:
    reads = attention("reads")
    rows = point_rows(reads, cloud)
    for wrong, words in (
        (lambda: point_rows(reads, cloud[:-1]), "weights for 150 points, but 149"),
        (lambda: point_rows(SimpleNamespace(**{**vars(reads), "points_are": "neither"}), cloud), "pooled vectors"),
        (lambda: point_rows(SimpleNamespace(**{**vars(reads), "weights": np.ones(3)}), cloud), r"got \[3\]"),
        (lambda: rows.check(2, 0), "no head 2: give one from 0 to 1"),
        (lambda: rows.check(0, -1), "no inducing point -1: give one from 0 to 2"),
        (lambda: rows.chosen_heads([]), "heads of .* are empty"),
        (lambda: chosen_rows(rows, cloud, [], 8), "queries of .* inducing points from 0 to 2"),
        (lambda: chosen_rows(rows, cloud, [3], 8), "no inducing point 3"),
    ):
        with pytest.raises(PointsetError, match=words):
            wrong()
