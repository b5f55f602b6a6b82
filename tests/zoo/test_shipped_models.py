"""The trained models in the package, loaded by name; and predictions for clouds in any container."""

import json
import shutil
import warnings

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import pointset
from pointset import PointsetError, Recipe
from pointset.data.catalogue.cards import load_card
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.normalize import normalize_points
from pointset.data.options import Preparation
from pointset.data.readers.off import write_off
from pointset.data.reload import load_like
from pointset.data.shapes10.build import make_shape
from pointset.evaluation.shape_files import classify_files
from pointset.runs import records
from pointset.zoo import predicting, pretrained
from pointset.zoo.out_of_distribution import FILE, TrainingDistribution, load_distribution
from pointset.zoo.pretrained import ANY_POSE, FOLDER, USUAL, pretrained_card

NAMES = pointset.list_pretrained()


@pytest.mark.parametrize("name", NAMES)
def test_a_model_computes_what_it_computed_when_it_was_published(name):
    model = pointset.load_model(name)
    known = load_file(FOLDER / name / "check.safetensors")
    with torch.inference_mode():
        torch.testing.assert_close(model(known["points"]), known["logits"], rtol=1e-3, atol=1e-3)
    kind, tag = name.split(".")
    again = pointset.create_model(kind, pretrained=tag).eval()
    assert all(torch.equal(one, two) for one, two in zip(model.parameters(), again.parameters(), strict=True))


@pytest.mark.parametrize("name", NAMES)
def test_a_card_and_its_run_say_the_same(name):
    card, run = pretrained_card(name), records.read_json(FOLDER / name / "run.json", "-")
    model = pointset.load_model(name)
    assert tuple(run["data"]["classes"]) == load_card(card.data).classes
    assert run["data"]["preparation"]["up"] == load_card(card.data).up
    assert card.parameters == sum(parameter.numel() for parameter in model.parameters())
    assert {"64", "100", "256", "1024"} <= set(card.accuracy)
    assert all(tested.low < tested.accuracy < tested.high for tested in card.accuracy.values())
    assert "/" not in json.dumps(run["data"]["source"])
    assert (FOLDER / name / FILE).stat().st_size < 100_000
    assert card.low_confidence["test shapes"] < 0.2


def test_other_classes_get_a_new_last_layer_on_the_trained_body():
    trained = pointset.load_model("isab16-pma.modelnet40-1024")
    model = pointset.create_model("isab16-pma", 7, pretrained="modelnet40-1024", seed=1)
    fresh = pointset.create_model("isab16-pma", 7, trained.spec.options, seed=1).state_dict()
    body, last = [], []
    for name, tensor in model.state_dict().items():
        (last if tensor.shape[:1] == (7,) else body).append(name)
    assert all(torch.equal(model.state_dict()[name], trained.state_dict()[name]) for name in body)
    assert len(last) == 2
    assert all(torch.equal(model.state_dict()[name], fresh[name]) for name in last)
    cloud = torch.rand(1024, 3, generator=torch.Generator().manual_seed(0))
    with pytest.warns(UserWarning, match="the last layer is new and untrained"):
        model.predict(cloud)
    with torch.no_grad():
        model.head[-1].weight += 0.1  # training, by whatever loop
    with warnings.catch_warnings(action="error"):
        model.predict(cloud)


def test_classes_of_the_same_name_keep_their_last_weights():
    trained = pointset.load_model("rff-pma4.modelnet40-1024")
    model = pointset.create_model("rff-pma4", ["nut", "chair"], pretrained=True)
    chair = trained.classes.index("chair")
    assert model.head[-1].weight[1].equal(trained.head[-1].weight[chair])
    assert not model.head[-1].weight[0].equal(trained.head[-1].weight[0])
    assert (model.classes, model.spec.as_dict()["pretrained"]) == (["nut", "chair"], "rff-pma4.modelnet40-1024")


def test_trained_weights_are_found_by_true_by_a_tag_and_by_the_full_name():
    made = [
        pointset.create_model("isab16-pma", pretrained=True),
        pointset.create_model(USUAL),
        pointset.create_model(USUAL, pretrained=True),
        pointset.load_model(USUAL),
    ]
    weights = [model.state_dict() for model in made]
    assert all(torch.equal(tensor, other[name]) for name, tensor in weights[0].items() for other in weights[1:])
    assert all(model.description["model"]["name"] == "isab16-pma" for model in made)
    for name, tag, words in [
        ("rff-max", True, "'rff-max' has no trained weights: trained models are dumlp16"),
        ("isab16-pma", "modelnet", "'isab16-pma.modelnet' is not a run .* one of isab16-pma.modelnet40"),
        (USUAL, "x", "is not a run or a trained model"),
        (USUAL, False, "no model is called"),
    ]:
        with pytest.raises(PointsetError, match=words):
            pointset.create_model(name, pretrained=tag)


def test_classify_gives_the_class_its_probability_and_low_confidence_of_files_and_arrays(tmp_path):
    model = pointset.load_model("isab16-pma.shapes10")
    assert repr(model.preparation) == "Preparation(1,024 points, standardize, z up)"
    write_off(tmp_path / "chair.off", make_shape("chair", "test", 0))
    cloud = np.random.default_rng(0).normal(size=(200, 3))
    first, second = model.classify([tmp_path / "chair.off", cloud])
    assert first["name"] == str(tmp_path / "chair.off")
    assert (first["class"], first["low_confidence"]) == ("chair", False)
    assert first["probability"] == pytest.approx(model.predict_proba(tmp_path / "chair.off").max(), abs=1e-6)
    assert second["name"] == "cloud 1"
    assert second["low_confidence"] == (second["probability"] < 0.5)
    with pytest.raises(PointsetError, match="the model has no names of classes"):
        pointset.create_model("rff-max", classes=3, dim=8).classify(cloud)


def test_a_folder_of_that_name_comes_first(tmp_path, monkeypatch):
    with pytest.raises(PointsetError, match=r"rff-pma4.toys. is not a run.*pointset train.*rff-pma4.modelnet40-1024"):
        pointset.load_model("rff-pma4.toys")
    monkeypatch.chdir(tmp_path)
    (tmp_path / USUAL).mkdir()
    with pytest.raises(PointsetError, match="not a run"):
        pointset.load_model(USUAL)


def test_damaged_weights_are_named(tmp_path, monkeypatch):
    shutil.copytree(FOLDER / USUAL, tmp_path / USUAL)
    monkeypatch.setattr(pretrained, "FOLDER", tmp_path)
    file = tmp_path / USUAL / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(PointsetError, match=r"model.safetensors does not hold weights.*install pointset again"):
        pointset.create_model("isab16-pma", pretrained="modelnet40-1024")


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if "modelnet40" in name])
def test_the_accuracy_of_the_card_is_found_again_on_the_real_clouds(name, real_data):
    model = pointset.load_model(name)
    description = model.description
    test = load_like(description["data"], "test", real_data / "modelnet40_ply_hdf5_1024", points=100)
    expected = pretrained_card(name).accuracy["100"].accuracy
    assert pointset.evaluate(model, test).accuracy == pytest.approx(expected, abs=1e-3)


@pytest.mark.filterwarnings("ignore:clouds of fewer than")  # 50 points
@pytest.mark.parametrize("name", [USUAL, ANY_POSE])
def test_probabilities_are_those_of_classify(name, tmp_path):
    """One model has one probability, in Python and on the command line: at the temperature of its card."""
    X = torch.randn(2, 50, 3, generator=torch.Generator().manual_seed(0))
    np.save(tmp_path / "noise.npy", X[0])
    loaded = pointset.load_model(name)
    (guess,) = classify_files(loaded, [ShapeFile(tmp_path / "noise.npy", "noise")])
    kind, tag = name.split(".")
    for model in (loaded, pointset.create_model(kind, pretrained=tag).eval()):
        probabilities = model.predict_proba(X)
        assert float(probabilities[0].max()) == pytest.approx(guess.likeliest[0][1], abs=1e-4)
        plain = model(normalize_points(X, model.preparation.normalize)) / pretrained_card(name).temperature
        torch.testing.assert_close(probabilities, plain.softmax(dim=1), atol=1e-3, rtol=0)
    assert loaded.temperature != 1
    assert not any(layer._forward_pre_hooks for layer in loaded.modules())
    untrained = pointset.create_model(kind, classes=3, pretrained=tag)
    assert (untrained.temperature, untrained.training_distribution) == (1, None)


def distribution_of(width: int = 6, rank: int = 2) -> tuple[TrainingDistribution, np.ndarray]:
    """Statistics of two classes, and the covariance that they stand for."""
    rng = np.random.default_rng(0)
    vectors, _ = np.linalg.qr(rng.normal(size=(width, width)))
    values = np.array([9.0, 4.0, *[0.5] * (width - rank)])
    directions = vectors[:, :rank] * np.sqrt(1 - 0.5 / values[:rank])
    means = torch.from_numpy(rng.normal(size=(2, width)))
    return TrainingDistribution(means, torch.from_numpy(directions), 3.0), vectors * values @ vectors.T


def test_the_distance_is_to_the_nearest_mean_under_the_covariance():
    distribution, covariance = distribution_of()
    rows = torch.randn(5, 6, generator=torch.Generator().manual_seed(1))
    offsets = rows.double().numpy()[:, None] - distribution.means.numpy()
    squares = np.einsum("nci,ij,ncj->nc", offsets, np.linalg.inv(covariance), offsets).min(axis=1)
    np.testing.assert_allclose(distribution.distances(rows), np.sqrt(squares * 0.5 / 3.0), rtol=1e-6)
    assert distribution.distances(distribution.means).tolist() == pytest.approx([0, 0], abs=1e-9)


def test_statistics_that_are_saved_are_loaded(tmp_path):
    assert load_distribution(tmp_path) is None
    distribution, _ = distribution_of()
    distribution.save(tmp_path)
    again = load_distribution(tmp_path)
    rows = torch.randn(4, 6)
    torch.testing.assert_close(again.distances(rows), distribution.distances(rows), rtol=0.02, atol=0.02)
    (tmp_path / FILE).write_bytes(b"?")
    with pytest.raises(PointsetError, match=FILE):
        load_distribution(tmp_path)


def test_an_out_of_distribution_shape_has_low_confidence_whatever_its_probability():
    model = pointset.load_model(USUAL)
    foreign = torch.rand(1024, 3, generator=torch.Generator().manual_seed(1)) * torch.tensor([0.2, 1.0, 3.0])
    model.temperature = 1e-3
    prediction = predicting.predict(model, predicting.prepared_batches(model, [foreign.square().numpy()]))
    assert prediction.probabilities.max() > 0.99
    assert prediction.distances.item() > 2
    assert prediction.low_confidence.tolist() == [True]
    model.training_distribution = None
    assert model.classify(foreign.square().numpy())[0]["low_confidence"] is False


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


@pytest.mark.parametrize("name", ["isab4-pma", "dumlp4-dumlp4"])
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
    for model in (trained, pointset.load_model(tmp_path)):
        assert (model.classes, model.preparation) == (["a", "b"], sets.preparation)
        # Sets that are normalised already, as evaluation has them, stay so: a subset's mean is not the cloud's.
        with torch.no_grad():
            torch.testing.assert_close(model.predict_proba(sets.points), model.eval()(sets.points).softmax(1))


POINTS = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("name", ["isab4-pma", "pointnet"])
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
        assert model(given[:0]).shape == (0, 3) or given.ndim == 2
        assert model.double()(given).dtype == torch.float64
