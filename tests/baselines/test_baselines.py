"""Baselines: features, heads against scikit-learn, runs."""

import numpy as np
import pytest
import torch
from sklearn.svm import SVC

import pointset
from pointset.baselines.features import HISTOGRAM_BINS, ShapeFeatures, SurfaceFeatures
from pointset.baselines.models import (
    EMBEDDERS,
    PENALTY,
    WIDTH,
    Baseline,
    SupportVectors,
    mean_log_probabilities,
)
from pointset.data.local_features import WIDTHS
from pointset.training.baselines import extract_rows, fit_head, set_pose
from pointset.zoo.models import ensemble_of


def make_sets(shapes=8, points=32, classes=("ball", "flat", "rod"), seed=0):
    generator = np.random.default_rng(seed)
    scales = {"ball": (1, 1, 1), "flat": (1, 1, 0.05), "rod": (0.1, 0.1, 1)}
    X = [generator.normal(size=(points, 3)) * scales[name] for name in classes for _ in range(shapes)]
    return pointset.from_arrays(np.stack(X), [name for name in classes for _ in range(shapes)], list(classes))


@pytest.mark.parametrize("compute", [ShapeFeatures(), SurfaceFeatures()])
def test_features_keep_position_scale_and_order_out_and_are_finite(compute):
    X = torch.randn(3, 200, 3, generator=torch.Generator().manual_seed(0))
    features = compute(X)
    assert features.shape == (3, compute.width)
    assert (compute(X.flip(1)) - features).norm() < 1e-4 * features.norm()
    some = X[:, :50]
    assert (compute(7 * some + 5) - compute(some)).abs().max() < 0.1  # a point at the edge of a cell may change it
    assert all(compute(cloud).isfinite().all() for cloud in (X[:1, :1], torch.ones(1, 5, 3), torch.eye(3)[None]))


def test_surfaces_lines_and_volumes_differ_by_their_neighbourhoods():
    """The first 24 features are histograms of linearity, planarity and scattering of small neighbourhoods."""
    X = torch.rand(3, 512, 3, generator=torch.Generator().manual_seed(0))
    X[0, :, 1:], X[1, :, 2] = 0, 0
    line, plane, volume = SurfaceFeatures()(X)[:, :24].square().view(3, 3, HISTOGRAM_BINS)
    assert line[0, -1] == 1
    assert plane[2, 0] == 1
    assert volume[2, 2:].sum() > 0.9
    slopes = SurfaceFeatures()(X)[1, -34:-10].view(4, 6)
    assert slopes[3, 0] == 1  # the normals of a level plane point up, and it has one height


def test_an_ensemble_averages_log_probabilities():
    clouds, members = torch.randn(4, 20, 3), [pointset.create_model("rff-max", classes=3, seed=seed) for seed in (0, 1)]
    ensemble = ensemble_of(members).eval()
    expected = sum(member.eval()(clouds).log_softmax(dim=1) for member in members) / 2
    torch.testing.assert_close(ensemble(clouds), expected)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_support_vectors_decide_as_scikit_learn(classes):
    generator = np.random.default_rng(0)
    rows, labels = generator.normal(size=(60, 5)), np.arange(60) % classes
    head, state = SupportVectors(classes), str(np.random.get_state())  # noqa: NPY002 - the user's
    head.fit(torch.tensor(rows, dtype=torch.float32), torch.tensor(labels), [2, 3])
    assert str(np.random.get_state()) == state  # noqa: NPY002
    scaled = ((torch.tensor(rows, dtype=torch.float32) - head.mean) * head.scale).numpy()
    fitted = SVC(C=PENALTY, gamma=WIDTH / 2, decision_function_shape="ovo").fit(scaled, labels)
    expected = fitted.decision_function(scaled).reshape(60, -1) * (-1 if classes == 2 else 1)
    assert np.abs(head.decisions(torch.from_numpy(scaled)).numpy() - expected).max() < 1e-4
    blocks = head.standardise(torch.from_numpy(rows), [2, 3]).split([2, 3], dim=1)
    assert [float(block.var(dim=0, correction=0).sum()) for block in blocks] == pytest.approx([1, 1])


def test_held_out_logits_are_of_heads_that_were_fitted_without_the_fold():
    generator = torch.Generator().manual_seed(0)
    rows, labels = torch.randn(40, 5, generator=generator), torch.arange(40) % 4
    baseline = Baseline([], SupportVectors(4))
    places = np.arange(40)
    found = fit_head(baseline, [rows[:, None]], labels, places % 5, places, most=4) * baseline.head.temperature
    for fold in range(4):
        inside, head = torch.arange(40) % 5 == fold, SupportVectors(4)
        head.fit(rows[~inside], labels[~inside], [5])
        torch.testing.assert_close(found[inside], head(rows[inside]))
    assert found[4::5].isnan().all()


@pytest.mark.parametrize("how", ["unit-sphere", "principal-axes"])
def test_rows_are_the_same_from_points_alone(how):
    """Beside rounding: the local features come from the pool or, for bare points, from the model."""
    sets = make_sets(shapes=2, points=200).normalized(how)
    model = pointset.create_model("features+surface+embedding-svm", classes=3)
    baseline = model.model
    set_pose(baseline, sets)
    of_pool, alone = extract_rows(baseline, sets, progress=False), baseline.blocks(sets.points)
    assert len(of_pool) == 2 + len(EMBEDDERS["embedding"])
    for known, found in zip(of_pool, alone, strict=True):
        assert (known - found).norm() < 0.02 * known.norm()


def test_features_of_points_are_not_taken_for_local_features():
    width = WIDTHS["upright"]
    alone = pointset.create_model("embedding-svm", classes=3)
    featured = pointset.create_model("embedding-svm", classes=3, inputs=3 + width)
    X = torch.randn(2, 60, 3 + width, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(featured.embed_sets(X), alone.embed_sets(X[..., :3]))


def test_members_of_an_ensemble_may_have_no_local_features():
    train, members = make_sets(), [pointset.create_model("embedding-svm", classes=3)]
    members += [pointset.create_model("rff-max", classes=3, dim=8, local_features=kind) for kind in ("none", "upright")]
    for member in members:
        pointset.fit(member, train, pointset.Recipe(epochs=1), progress=False)
    ensemble = ensemble_of(members).eval()
    assert ensemble.local_features == "upright"
    sets = train.with_local_features("upright")
    own = [pointset.evaluate(member, train).logits for member in members]
    expected = mean_log_probabilities([torch.from_numpy(logits) for logits in own])
    assert (ensemble(sets.points) - expected).abs().max() < 1e-5 * expected.abs().max()


@pytest.mark.parametrize("name", ["features-svm", "surface+embedding-svm", "any-svm"])
def test_a_baseline_is_fitted_saved_and_loaded(name, tmp_path):
    train, test = make_sets(seed=0), make_sets(seed=1)
    model = pointset.create_model(name, classes=3)
    fitted = pointset.fit(model, train, run=tmp_path / name, progress=False)
    evaluation = pointset.evaluate(fitted.model, test)
    assert evaluation.accuracy > 0.8
    loaded = pointset.load_model(tmp_path / name)
    run = loaded.description
    assert run["model"]["name"] == name
    assert np.array_equal(pointset.evaluate(loaded, test).logits, evaluation.logits)
    again = pointset.fit(pointset.create_model(name, classes=3), train, run=tmp_path / name, progress=False)
    assert again.history == fitted.history


def test_padding_does_not_change_a_baseline():
    model = pointset.create_model("features-svm", classes=3)
    pointset.fit(model, make_sets(), progress=False)
    X = torch.randn(2, 20, 3, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(20).expand(2, 20) < torch.tensor([[20], [13]])
    expected = torch.cat([model(X[:1]), model(X[1:, :13])])
    assert (model(X.masked_fill(~mask[..., None], 9.0), mask) - expected).abs().max() < 1e-5


def test_a_class_without_a_training_shape_is_never_predicted():
    sets = make_sets()
    model = pointset.create_model("features-svm", classes=3)
    pointset.fit(model, sets.subset((sets.labels != 1).nonzero().flatten()), progress=False)
    assert set(pointset.evaluate(model, sets).predictions) == {0, 2}
