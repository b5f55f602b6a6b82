"""Exact support: the points that decide, found by gradients and checked by leaving the others out."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import asked

import pointset
from pointset.explain.importance import critical_points
from pointset.explain.inspection import network_of
from pointset.explain.support import exact_support, support_map
from pointset.zoo.models import mix

N = 120


@pytest.fixture
def cloud() -> torch.Tensor:
    return torch.randn(N, 3, generator=torch.Generator().manual_seed(0))


def network(name: str, neighbourhoods: str = "none", **options: object) -> torch.nn.Module:
    return pointset.create_model(name, classes=4, dim=16, heads=2, neighbourhoods=neighbourhoods, seed=1, **options)


SPARSE = {"pool_weights": ("sparsemax",), "temperature": 0.05}
SUPPORTED = [("rff-max", {}), ("rff-pma", SPARSE), ("rff-pma2", SPARSE), ("none-top8", {}), ("rff-max+pma", SPARSE)]
UNSUPPORTED = [("rff-pma", {}), ("rff-mean", {}), ("isab4-max", {}), ("sab-pma", SPARSE), ("dgcnn", {})]


@pytest.mark.parametrize("neighbourhoods", ["none", "oriented"])
@pytest.mark.parametrize(("name", "options"), SUPPORTED)
def test_logits_are_those_of_the_deciding_points_alone(name, options, neighbourhoods, cloud) -> None:
    model = network(name, neighbourhoods, **options)
    support = exact_support(model, cloud)
    assert support is not None
    assert 0 < support.points.sum() < N
    rows = model.with_numbers(cloud[None])  # type: ignore[operator]
    with torch.no_grad():
        expected = model.eval()(rows)
        torch.testing.assert_close(model(rows[:, support.points]), expected, atol=1e-5, rtol=1e-5)
        changed = []
        for point in support.points.nonzero().flatten()[:5]:
            kept = support.points.clone()
            kept[point] = False
            changed.append(float((model(rows[:, kept]) - expected).abs().max()))
    assert max(changed) > 1e-4, "a point that decides can change the logits"
    assert support.change == pytest.approx(0, abs=1e-5)


def test_of_a_maximum_they_are_the_critical_points(cloud) -> None:
    model = network("rff-max")
    support = exact_support(model, cloud)
    assert support is not None
    assert torch.equal(support.points, critical_points(model, cloud) > 0)
    weights = support_map(support).weights
    assert weights.shape == (1, 1, N)
    assert float(weights.sum()) == pytest.approx(1)


@pytest.mark.parametrize(("name", "options"), UNSUPPORTED)
def test_there_is_none_where_all_points_have_a_weight_or_points_interact(name, options, cloud) -> None:
    assert exact_support(network(name, **options), cloud) is None


def test_attend_prints_it_and_draws_it(cloud, tmp_path: Path, capsys) -> None:
    sets = pointset.from_arrays(np.random.default_rng(0).normal(size=(8, N, 3)), [0, 1] * 4)
    model = pointset.create_model("rff-max", classes=2, dim=8, neighbourhoods="oriented")
    pointset.fit(model, sets, pointset.Recipe(epochs=1), run=tmp_path / "run", progress=False)
    np.save(tmp_path / "cloud.npy", cloud)
    options = ("--model", tmp_path / "run", "-o", tmp_path / "page.html")
    found = asked(capsys, "attend", tmp_path / "cloud.npy", *options)
    assert found["layers"] == [{"layer": "support", "kind": "decides", "shape": [1, 1, N]}]
    assert 0 < found["support"]["deciding"] <= 8
    assert found["support"]["change"] < 1e-5
    assert "the points that decide" in (tmp_path / "page.html").read_text()
    assert json.dumps(found)


def test_of_a_product_of_classifiers_the_network_is_looked_into(cloud) -> None:
    sets = pointset.from_arrays(np.random.default_rng(0).normal(size=(12, N, 3)), [0, 1, 2, 3] * 3)
    svm = pointset.fit(pointset.create_model("features-svm", classes=4), sets, progress=False).model
    members = [network("rff-max", "oriented"), svm]
    product = mix(members).eval()
    product.preparation = replace(members[0].preparation, points=N, pool_points=N, neighbourhoods="oriented")
    product.classes = list("abcd")
    seen = pointset.inspect_shape(product, cloud)
    assert [entry.kind for entry in seen.maps] == ["decides"]
    with pytest.raises(pointset.PointsetError, match="without a network"):
        network_of(mix([svm, svm]))
