"""Predictions for clouds in any container, of any type, of any size and in any unit."""

import numpy as np
import pytest
import torch

import pointset
from pointset.data.preparation import Preparation
from pointset.training.recipe import Recipe
from pointset.zoo import predicting


@pytest.fixture(scope="module")
def model():
    model = pointset.create_model("isab4-pma", classes=3, dim=8, heads=2, norm="layer").train()
    model.preparation = Preparation(normalize="unit-sphere")
    return model


@pytest.fixture(scope="module")
def batch() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((5, 7, 3)).astype(np.float32)


def expected(model, clouds) -> np.ndarray:
    """One cloud at a time, normalised by hand."""
    found = []
    for cloud in clouds:
        centred = torch.tensor(cloud, dtype=torch.float64) - torch.tensor(cloud, dtype=torch.float64).mean(dim=0)
        with torch.no_grad():
            logits = model.eval()((centred / centred.norm(dim=1).max().clamp(min=1e-9)).float()[None])
        found.append(logits[0].softmax(dim=0).numpy())
    model.train()
    return np.stack(found)


@pytest.mark.parametrize("name", ["isab4-pma", "pointnet"])
def test_one_cloud_a_batch_and_a_list_give_the_same(name, batch):
    model = pointset.create_model(name, classes=3, dim=8, heads=2)
    model.preparation = Preparation(normalize="unit-sphere")
    whole = model.predict_proba(batch)
    assert (whole.shape, whole.dtype) == ((5, 3), np.float32)
    np.testing.assert_allclose(whole, expected(model, batch), atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(list(batch)), whole, atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(batch[3]), whole[3:4], atol=1e-6)
    np.testing.assert_allclose(model.predict_proba(batch, batch_size=2), whole, atol=1e-6)
    assert model.predict(batch).tolist() == whole.argmax(axis=1).tolist()
    assert model.training


@pytest.mark.parametrize("rows", [1, 10, predicting.ROWS_AT_ONCE])
def test_clouds_of_several_sizes(rows, model, monkeypatch):
    monkeypatch.setattr(predicting, "ROWS_AT_ONCE", rows)
    rng = np.random.default_rng(1)
    clouds = [rng.standard_normal((size, 3)) for size in (3, 1, 9, 2)]
    found = model.predict_proba(clouds, batch_size=3)
    np.testing.assert_allclose(found, expected(model, clouds), atol=1e-5)
    column = np.empty(4, object)
    column[:] = clouds
    assert np.array_equal(model.predict_proba(column, batch_size=3), found)
    padded = torch.nn.utils.rnn.pad_sequence([torch.tensor(cloud) for cloud in clouds], batch_first=True)
    mask = torch.arange(9) < torch.tensor([3, 1, 9, 2])[:, None]
    padded[~mask] = torch.nan
    np.testing.assert_allclose(model.predict_proba(padded, mask).numpy(), found, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int32])
def test_tensors_of_any_type_give_tensors(dtype, model, batch):
    given = (torch.from_numpy(batch) * 100).to(dtype)
    found = model.predict_proba(given)
    np.testing.assert_allclose(found.numpy(), model.predict_proba(given.double().numpy()), atol=1e-5)
    assert torch.equal(model.predict(list(given)), found.argmax(dim=1))


@pytest.mark.parametrize("name", ["rff-max", "isab4-pma", "dumlp4-dumlp4"])
def test_large_batches_go_in_pieces_to_the_same_logits(name, monkeypatch):
    model = pointset.create_model(name, classes=3, dim=8, seed=0).eval()
    clouds, asked = torch.randn(5, 16, 3), []
    whole = model(clouds)
    monkeypatch.setattr(predicting, "ROWS_AT_ONCE", 40)
    forward = model.forward
    monkeypatch.setattr(model, "forward", lambda points, mask: asked.append(len(points)) or forward(points, mask))
    torch.testing.assert_close(predicting.predict(model, [(clouds, None)]).logits, whole)
    assert asked == [2, 2, 1]


@pytest.mark.parametrize(("centred", "normalize"), [(True, "center-standardize"), (False, "standardize")])
def test_a_trained_model_knows_its_classes_and_how_to_normalise(centred, normalize, tmp_path):
    place = 0.0 if centred else 0.5
    X = np.random.default_rng(0).normal(size=(40, 64, 3))
    X += place - X.mean(axis=1, keepdims=True)
    sets = pointset.from_arrays(X, ["a", "b"] * 20, points=16, normalize="standardize")
    trained = pointset.create_model("rff-max", classes=2, dim=8)
    assert (trained.classes, trained.preparation.normalize) == (None, "none")
    pointset.fit(trained, sets, Recipe(epochs=1), run=tmp_path, progress=False)
    assert sets.preparation.normalize == normalize
    for model in (trained, pointset.load_run(tmp_path)[0]):
        assert (model.classes, model.preparation) == (["a", "b"], sets.preparation)
        # Sets that are normalised already, as evaluation has them, stay so: a subset's mean is not the cloud's.
        with torch.no_grad():
            torch.testing.assert_close(model.predict_proba(sets.points), model.eval()(sets.points).softmax(1))


POINTS = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["rff-max", "isab4-pma", "pointnet"])
@pytest.mark.parametrize(
    ("given", "same"),
    [
        (POINTS.numpy(), POINTS),
        (POINTS.double(), POINTS),
        (POINTS.numpy().astype(">f8"), POINTS),
        (POINTS.numpy()[:, ::-1], POINTS.flip(1)),
        (POINTS[0], POINTS[:1]),
        (POINTS[0].numpy(), POINTS[:1]),
        ((4 * POINTS).to(torch.int16), (4 * POINTS).trunc()),
        ((4 * POINTS).to(torch.int64).numpy(), (4 * POINTS).trunc()),
        (POINTS.half(), POINTS.half().float()),
    ],
)
def test_what_can_be_converted_gives_the_logits_of_the_same_points(name, given, same):
    model = pointset.create_model(name, classes=3).eval()
    with torch.no_grad():
        assert torch.equal(model(given), model(same))
        mask = np.ones(given.shape[:-1], bool)
        assert torch.equal(model(given, mask), model(same))


def test_a_model_in_double_precision_takes_single_points_and_an_empty_batch_has_no_logits():
    model = pointset.create_model("rff-max", classes=3).double().eval()
    assert model(POINTS).dtype == torch.float64
    assert model(POINTS[:0]).shape == (0, 3)
