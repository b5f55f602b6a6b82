"""Local features against eigenvectors, also of bad clouds, turned clouds and copies."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import pointset
from pointset import PointSets
from pointset.data import augmentation_from_names
from pointset.data.local_features import (
    EPSILON,
    FEWEST,
    GAP,
    NEAREST,
    PART,
    SCALES,
    SIZE,
    USUAL_POINTS,
    WIDTHS,
    batch_local_features,
    cloud_local_features,
    common_kind,
)
from pointset.data.normalize import ABOUT
from pointset.data.preparation import prepare
from pointset.data.rotations import Columns
from pointset.errors import PointsetError

N = 200
PAIRS = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]


def blob(seed: int = 0, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)) * [3.0, 2.0, 1.0] + 5.0


def by_eigenvectors(points: np.ndarray) -> np.ndarray:
    """The features "invariant" and the mean shifts of each point, by the formulas of the module."""
    centred, n = points - points.mean(axis=0), len(points)
    scaled = centred / np.sqrt((centred**2).sum(axis=1).mean())
    count = max(FEWEST, round(SIZE * min(1.0, n / USUAL_POINTS) ** 0.5))
    rows, normals, around, shifts = [], [], [], []

    def fading(gap: float) -> float:
        return gap / np.hypot(gap, GAP)

    def size(part: np.ndarray) -> np.ndarray:
        return np.hypot(part, PART)

    for point in scaled:
        distances, indices = cKDTree(scaled).query(point, count)
        C = np.cov(scaled[indices].T, bias=True)
        values, vectors = np.linalg.eigh(C / np.trace(C))
        s3, s2, s1 = np.sqrt(values.clip(0) + EPSILON)
        normal = vectors[:, 0] * fading((values[1] - values[0]) * (values[2] - values[0]))
        first = vectors[:, 2] * fading((values[2] - values[1]) * (values[2] - values[0]))
        reach, distance = max(distances[-1], NEAREST), np.linalg.norm(point)
        density = np.log(reach) + np.log(n / USUAL_POINTS * SIZE / count) / 2
        offset = scaled[indices].mean(axis=0) - point
        towards = (
            (normal @ point) * (normal @ offset) / distance / np.hypot(size(normal @ point / distance), EPSILON**0.5)
        )
        rows.append([(s1 - s2) / s1, (s2 - s3) / s1, density])
        rows[-1] += [distance, size(normal @ point / distance), size(first @ point / distance)]
        rows[-1] += [towards / reach, size(normal @ offset / reach), np.linalg.norm(offset) / reach]
        weights = [np.exp(-((scaled - point) ** 2).sum(axis=1) / 2 / scale**2) for scale in SCALES]
        means = [np.average(scaled, axis=0, weights=each) for each in weights]
        shifts.append([(mean - point) / scale for mean, scale in zip(means, SCALES, strict=True)])
        for shift in shifts[-1]:
            rows[-1] += [np.linalg.norm(shift), shift @ point / distance, size(normal @ shift)]
        normals.append(normal)
        around.append(indices[1:])
    for row, point, own, near, moved in zip(rows, scaled, normals, around, shifts, strict=True):
        others = np.array(normals)[near]
        directions = (scaled[near] - point) / np.linalg.norm(scaled[near] - point, axis=1, keepdims=True)
        row += [size(part).mean() for part in (others @ own, directions @ own, (directions * others).sum(axis=1))]
        row += [own[i] * own[j] for i, j in PAIRS]
        row += np.concatenate(moved).tolist()
    return np.array(rows)


COLUMNS = {"upright": [0, 1, 2, *range(30, 42), *range(24, 30)], "invariant": [*range(30)]}
KINDS = [*WIDTHS][1:]  # without "none"


@pytest.mark.parametrize("n", [40, N, 700, 1500])
def test_numbers_follow_the_formulas(n):
    points = blob(n=n)
    expected = by_eigenvectors(points)
    for kind in KINDS:
        assert cloud_local_features(points, kind) == pytest.approx(expected[:, COLUMNS[kind]], abs=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_gives_the_numbers_of_its_clouds_and_zeros_in_padded_rows(kind):
    points = torch.from_numpy(np.stack([blob(seed) for seed in range(3)]))
    mask = torch.rand(3, N, generator=torch.Generator().manual_seed(0)) < torch.tensor([[2.0], [0.5], [0.02]])
    numbers = batch_local_features(points, kind, mask)
    assert numbers.shape == (3, N, WIDTHS[kind])
    assert not numbers[~mask].any()
    for row in range(3):
        alone = cloud_local_features(points[row][mask[row]].numpy(), kind)
        assert numbers[row][mask[row]].numpy() == pytest.approx(alone, abs=1e-5)
    whole = batch_local_features(points, kind)
    assert whole[0].numpy() == pytest.approx(cloud_local_features(points[0].numpy(), kind), abs=1e-5)


def test_planes_lines_and_balls_are_told_apart():
    rng = np.random.default_rng(0)
    plane = np.c_[rng.uniform(size=(500, 2)), np.zeros(500)]
    line = np.c_[np.zeros((500, 2)), rng.uniform(size=500)]
    ball = rng.normal(size=(500, 3))
    linearity, planarity, *_, zz, _, _, _ = cloud_local_features(plane, "upright").mean(axis=0)
    assert planarity > linearity
    assert zz > 0.99  # the normal is the axis z
    assert cloud_local_features(line, "upright")[:, 0].min() > 0.98
    assert abs(cloud_local_features(line, "upright")[:, -6:]).max() < 1e-3  # no plane, no normal
    assert cloud_local_features(ball, "upright")[:, 1].mean() < planarity


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", [1e-12, 1e-3, 1e12])
def test_units_and_places_do_not_matter(kind, unit):
    points = blob()
    moved = (points - 7.0) * unit
    assert cloud_local_features(moved, kind) == pytest.approx(cloud_local_features(points, kind), abs=1e-5)


FAULTS = {
    "one point": np.ones((1, 3)),
    "fewer points than neighbours": blob(n=5),
    "equal points": np.full((50, 3), 3.0),
    "points on a line": np.linspace(0, 1, 40)[:, None] * np.ones(3),
    "points on a plane": blob() * [1, 1, 0],
    "a point without others near it": np.concatenate([blob(n=99), [[100.0, 100, 100]]]),
    "one far point": np.concatenate([blob(), [[1e9, 0, 0]]]),
    "half of them equal": np.concatenate([blob(), np.zeros((N, 3))]),
    "whole numbers": np.random.default_rng(0).integers(0, 3, (N, 3)),
    "float16": blob().astype(np.float16),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_every_cloud_gives_finite_numbers_within_bounds(fault, kind):
    numbers = cloud_local_features(FAULTS[fault], kind)
    assert numbers.shape == (len(FAULTS[fault]), WIDTHS[kind])
    assert np.isfinite(numbers).all()
    assert np.abs(numbers).max() < max(13, len(numbers) ** 0.5)  # the distance of one far point from the centre
    batch = torch.from_numpy(np.asarray(FAULTS[fault], np.float32))[None].requires_grad_()
    numbers = batch_local_features(batch, kind)
    assert numbers.isfinite().all()
    (gradient,) = torch.autograd.grad(numbers.sum(), batch)  # a root of zero has none
    assert gradient.isfinite().all()


@pytest.mark.parametrize("kind", KINDS)
def test_features_do_not_depend_on_how_often_a_point_is_repeated(kind):
    points = blob().astype(np.float32)
    alone = cloud_local_features(points, kind)
    padded = np.concatenate([points, points[-1:].repeat(110, axis=0), points[:5]])  # as a file that repeats its last
    features = cloud_local_features(padded, kind)
    assert features[:N] == pytest.approx(alone, abs=1e-5)
    assert features[N : N + 110] == pytest.approx(alone[-1:].repeat(110, axis=0), abs=1e-5)
    batch = torch.from_numpy(padded).double()[None]
    assert batch_local_features(batch, kind)[0].numpy() == pytest.approx(features, abs=1e-5)


def test_models_with_different_local_features_cannot_be_combined():
    assert common_kind(["none", "upright", "upright"]) == "upright"
    assert common_kind(["none"]) == "none"
    with pytest.raises(PointsetError, match="different local features"):
        common_kind(["upright", "invariant"])


def test_no_point_gives_no_numbers():
    assert cloud_local_features(np.zeros((0, 3)), "upright").shape == (0, WIDTHS["upright"])
    mask = torch.zeros(1, 4, dtype=torch.bool)
    assert not batch_local_features(torch.randn(1, 4, 3), "upright", mask).any()


@pytest.mark.parametrize("name", ["rotate-up", "rotate-any", "rotate-up-18"])
@pytest.mark.parametrize("up", ["y", "z"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_augmentation_that_turns_a_shape_turns_its_numbers(name, up, kind):
    points = np.stack([blob(seed) - 5.0 for seed in range(3)]).astype(np.float32)
    numbers = [cloud_local_features(cloud, kind) for cloud in points]
    given = torch.from_numpy(np.concatenate([points, np.stack(numbers)], axis=2))
    generator = torch.Generator().manual_seed(0)
    changed = augmentation_from_names((name,), up)(given, generator, columns=Columns(local_features=kind))
    assert not torch.allclose(changed[..., 3:], given[..., 3:], atol=0.1)
    for cloud in changed:
        assert cloud[:, 3:].numpy() == pytest.approx(cloud_local_features(cloud[:, :3].numpy(), kind), abs=2e-3)


@pytest.mark.parametrize("how", ABOUT)
@pytest.mark.parametrize("kind", KINDS)
def test_sets_that_are_turned_to_their_axes_turn_their_numbers(how, kind):
    clouds = np.stack([blob(seed) @ Rotation.random(random_state=seed).as_matrix() for seed in range(2)])
    sets = pointset.from_arrays(clouds, [0, 1], normalize=how).with_local_features(kind)
    drawn = sets.draw([0, 1], torch.Generator().manual_seed(0))
    prepared = torch.stack([prepare(cloud, sets.preparation).points for cloud in clouds])
    for one in (*sets.points, *drawn, *prepared):
        assert one[:, 3:].numpy() == pytest.approx(cloud_local_features(one[:, :3].numpy(), kind), abs=3e-3)


COUNT = 60
"""Points of the clouds of which copies are made."""


def sets_of(ragged: bool, count: int = 6) -> PointSets:
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(COUNT + (index if ragged else 0), 3)) for index in range(count)]
    return pointset.from_arrays(X, [index % 2 for index in range(count)], points=COUNT, features=[x[:, :1] for x in X])


def test_a_network_computes_local_features_of_augmented_sets_in_the_batch():
    points = np.stack([blob(seed, COUNT) for seed in range(6)])
    sets = pointset.from_arrays(points, [0, 1] * 3)
    model: Any = pointset.create_model("rff-max", classes=2, dim=8, local_features="upright", local_feature_noise=0.0)
    seen = list[torch.Tensor]()
    model.numbers.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    pointset.fit(model, sets, pointset.Recipe(epochs=1, augment=("crop", "scale")), progress=False)
    assert {one.shape[2] for one in seen} == {3}
    pointset.evaluate(model, sets)
    assert seen[-1].shape[2] == 3 + WIDTHS["upright"]  # of whole clouds, computed once


def test_networks_with_and_without_local_features_are_trained_on_augmented_sets_of_several_sizes():
    for kind in ("upright", "none"):
        options: Any = {"local_features": kind, "inputs": 4}
        model: Any = pointset.create_model("rff-max", classes=2, dim=8, **options)
        widths = list[int]()
        model.encoder.register_forward_pre_hook(lambda _, given, seen=widths: seen.append(given[0].shape[2]))
        recipe = pointset.Recipe(epochs=2, augment=("crop", "thin", "scale"), train_points=(8, 32))
        fitted = pointset.fit(model, sets_of(ragged=True), recipe, progress=False)
        assert set(widths) == {4 + WIDTHS[kind]}
        assert np.isfinite(fitted.history[-1]["loss"])


def test_a_network_that_was_trained_on_thinned_clouds_does_not_warn_of_them(tmp_path):
    few = np.random.default_rng(1).normal(size=(COUNT // 4, 4))
    for augment, warned in (("thin", False), ("crop", True)):
        model: Any = pointset.create_model("rff-max", classes=2, inputs=4, dim=8, local_features="upright")
        recipe = pointset.Recipe(epochs=1, augment=(augment,))
        pointset.fit(model, sets_of(ragged=False), recipe, run=tmp_path / augment, progress=False)
        for one in (model, pointset.load_model(tmp_path / augment)):
            with warnings.catch_warnings(record=True) as seen:
                warnings.simplefilter("always")
                one.predict(few)
            assert [str(each.message)[:23] for each in seen] == ["clouds of fewer than 30"] * warned
