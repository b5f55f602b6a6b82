"""Networks with neighbourhoods as inputs: every encoder and pooling, bare points, training, axes, export."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data.axes import UP_TO_Z
from pointset.data.neighbourhoods import WIDTHS, neighbourhood_numbers
from pointset.evaluation.costs import multiply_adds
from pointset.training.recipe import Recipe
from pointset.zoo.transfer import start_from, turn_inputs, without_neighbourhoods

KINDS = [*WIDTHS][1:]  # without "none"
NAMES = [*(f"{encoder}-max" for encoder in ("none", "rff", "rffp", "sab", "isab4", "dumlp4")), "rff-pma", "rff-dumlp4"]
POOLINGS = [f"none-{name}" for name in ("mean", "cov8", "pswe8", "fspool", "top2", "asp", "gem", "max+pma")]


def network(name: str = "rff-max", kind: str = "oriented", **options: Any) -> Any:
    return pointset.create_model(name, classes=3, dim=8, heads=2, neighbourhoods=kind, seed=1, **options)


def sets_of(count: int = 12, points: int = 60) -> pointset.PointSets:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(count, points, 3)) * np.where(np.arange(count) % 3 == 0, 0.1, 1.0)[:, None, None] ** [0, 0, 1]
    return pointset.from_arrays(X, np.arange(count) % 3, points=20)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES + POOLINGS)
def test_every_model_takes_bare_points_and_points_with_their_numbers(name: str, kind: str) -> None:
    model, points = network(name, kind).eval(), torch.randn(2, 50, 3, generator=torch.Generator().manual_seed(0))
    numbers = torch.from_numpy(np.stack([neighbourhood_numbers(cloud.numpy(), kind) for cloud in points]))
    with torch.no_grad():
        bare = model(points)
        torch.testing.assert_close(model(torch.cat([points, numbers], dim=2)), bare, atol=1e-3, rtol=1e-3)
        mask = torch.arange(60) < torch.tensor([50, 50])[:, None]
        padded = torch.cat([points, torch.full((2, 10, 3), torch.nan)], dim=1)
        torch.testing.assert_close(model(padded, mask), bare, atol=1e-4, rtol=1e-4)
    assert model.widths == (3, 3 + WIDTHS[kind])
    with pytest.raises(pointset.PointsetError, match=r"\[B, n, 3\]"):
        model(torch.randn(2, 50, 5))


def test_noise_and_dropout_are_for_training_alone() -> None:
    model, points = network(neighbourhood_noise=1.0, neighbourhood_dropout=0.5, dropout=0.0), torch.randn(8, 40, 3)
    with torch.no_grad():
        assert torch.equal(model.eval()(points), model(points))
        assert not torch.allclose(model.train()(points), model(points))
        rows = model.numbers(points)
    dropped = (rows[..., 3:] == 0).flatten(1).all(dim=1)
    assert 0 < dropped.sum() < 8


@pytest.mark.parametrize("how", ["none", "principal-axes"])
def test_training_standardises_the_numbers_and_needs_coordinates_alone(how: str) -> None:
    model, sets = network(), sets_of().normalized(how)
    pointset.fit(model, sets, Recipe(epochs=1), progress=False)
    numbers = sets.with_neighbourhoods("oriented").points[..., 3:].flatten(0, 1).numpy()
    np.testing.assert_allclose(model.numbers.mean, numbers.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(model.numbers.deviation, numbers.std(axis=0).clip(1e-3), atol=1e-4)
    assert model.preparation.neighbourhoods == "oriented"
    assert pointset.evaluate(model, sets).logits.shape == (12, 3)
    assert model.embed(sets.source_pool.cloud(0)).shape[0] == 1


def test_weights_of_one_upward_axis_serve_shapes_of_another() -> None:
    model, points = network("isab4-pma").eval(), torch.randn(2, 40, 3)
    model.numbers.fit(torch.randn(100, 9) + 1)
    turn = torch.tensor(UP_TO_Z["z"]).T @ torch.tensor(UP_TO_Z["y"])
    with torch.no_grad():
        expected = model(points @ turn.T)
        turn_inputs(model, turn)
        torch.testing.assert_close(model(points), expected, atol=1e-4, rtol=1e-4)


def test_a_training_from_trained_weights_keeps_their_scale() -> None:
    trained = network()
    pointset.fit(trained, sets_of(), Recipe(epochs=1), progress=False)
    other = pointset.from_arrays(np.random.default_rng(1).normal(size=(6, 30, 3)), [0, 1] * 3)
    model: Any = start_from(trained, other)
    pointset.fit(model, other, Recipe(epochs=1), progress=False)
    assert torch.equal(model.numbers.mean, trained.numbers.mean)


def test_without_neighbourhoods_a_network_gives_what_it_gives_for_mean_numbers() -> None:
    trained, points = network("isab4-pma").eval(), torch.randn(2, 40, 3)
    trained.numbers.fit(torch.randn(100, 9) + 1)
    trained.classes = ["a", "b", "c"]
    bare: Any = without_neighbourhoods(trained).eval()
    with torch.no_grad():
        expected = trained(torch.cat([points, trained.numbers.mean.expand(2, 40, 9)], dim=2))
        torch.testing.assert_close(bare(points), expected, atol=1e-5, rtol=1e-5)
    assert (bare.neighbourhoods, bare.classes) == ("none", trained.classes)


def test_shapes_at_their_principal_axes_are_not_turned_where_another_axis_is_up() -> None:
    trained, clouds = network(kind="none"), np.random.default_rng(1).normal(size=(6, 30, 3))
    sets = pointset.from_arrays(clouds, [0, 1, 2] * 2, classes=["a", "b", "c"], up="y", normalize="principal-axes")
    trained.classes = ["a", "b", "c"]
    model: Any = start_from(trained, sets)
    assert all(model.state_dict()[name].equal(tensor) for name, tensor in trained.state_dict().items())


@pytest.mark.slow
@pytest.mark.parametrize(("suffix", "kind"), [(".pt2", "oriented"), (".onnx", "shifts"), (".onnx", "all")])
def test_exported_files_take_bare_points(suffix: str, kind: str, tmp_path: Path) -> None:
    model = network("rff-pma", kind).eval()
    assert pointset.export_model(model, tmp_path / f"model{suffix}", mask=True) < 1e-3


def test_neighbours_are_among_the_costs() -> None:
    assert multiply_adds(network(), 100) > multiply_adds(network(kind="none"), 100) + 3 * 100**2
