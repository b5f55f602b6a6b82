"""What `predict` takes, embeddings, explanations and pictures take too: files, meshes, arrays, lists of these, sets."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import pointset
from pointset.data import read_mesh, sample_points
from pointset.data.readers.off import write_off
from pointset.data.shapes10.build import make_shape
from pointset.explain import Support, check_explanations, critical_points, exact_support, occlusion_influence

NAME, FEW = "isab16-pma.shapes10", 48


@pytest.fixture(scope="module")
def model():
    model = pointset.load_model(NAME)
    model.preparation = replace(model.preparation, points=FEW)
    return model


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    write_off(folder / "chair.off", make_shape("chair", "test", 0))
    np.save(folder / "lamp.npy", sample_points(make_shape("lamp", "test", 0), FEW, seed=0))
    return [folder / "chair.off", str(folder / "lamp.npy")]


def test_a_file_a_mesh_and_prepared_points_have_the_same_maps(model, files):
    points = model.prepare(files[0]).points
    expected = pointset.attention_maps(model, points)
    mesh = read_mesh(files[0])
    other = SimpleNamespace(vertices=mesh.vertices, faces=mesh.faces)  # of another library, such as trimesh
    for shape in (files[0], str(files[0]), mesh, other, model.prepare(files[0]), points * 100 + 50, points.tolist()):
        for found, same in zip(pointset.attention_maps(model, shape), expected, strict=True):
            torch.testing.assert_close(found.weights, same.weights, atol=1e-4, rtol=1e-3)
        assert model.predict(shape).tolist() == model.predict(points).tolist()
    both = pointset.attention_maps(model, files)
    for found, same in zip(both, expected, strict=True):
        torch.testing.assert_close(found[0].weights, same.weights, atol=1e-5, rtol=1e-4)
    with pytest.raises(pointset.PointsetError, match="a Linear cannot prepare a file"):
        pointset.attention_maps(torch.nn.Linear(3, 2), files[0])


def test_a_padded_batch_in_any_unit_has_the_maps_of_its_clouds(model):
    clouds = torch.rand(2, 60, 3, generator=torch.Generator().manual_seed(0)) * 100 + 50
    mask = torch.arange(60) < torch.tensor([[60], [40]])
    maps = pointset.attention_maps(model, clouds, mask)
    for row, cloud in enumerate((clouds[0], clouds[1, :40])):
        for found, same in zip(maps, pointset.attention_maps(model, cloud), strict=True):
            torch.testing.assert_close(found[row].weights, same.weights, atol=1e-5, rtol=1e-4)
    assert pointset.attention_maps(model, clouds[1], mask[1])[0].weights.shape[-1] == 40


@pytest.mark.parametrize("explain", [critical_points, exact_support, occlusion_influence, check_explanations])
def test_explanations_take_what_is_predicted(model, files, explain):
    """Of several shapes there is a list, and an array in any unit keeps its points."""
    preparation, model = model.preparation, pointset.create_model("rff-max", classes=10, dim=8)
    model.preparation = preparation

    def numbers(found):
        if isinstance(found, dict):
            return torch.stack([torch.from_numpy(curves.deletion) for curves in found.values()])
        return found.points if isinstance(found, Support) else found

    points = [model.prepare(file).points for file in files]
    for shapes in (files[0], read_mesh(files[0]), model.prepare(files[0]), points[0], 4 * points[0].numpy()):
        torch.testing.assert_close(numbers(explain(model, shapes)), numbers(explain(model, points[0])))
    sets = pointset.from_arrays([one.numpy() for one in points], [0, 1], normalize="none")
    for shapes, clouds in ((files, points), (sets, [sets[row][0] for row in range(2)])):
        found, expected = explain(model, shapes), explain(model, clouds)
        pairs = [(found, expected)] if isinstance(found, dict) else zip(found, expected, strict=True)
        for one, other in pairs:
            torch.testing.assert_close(numbers(one), numbers(other))
    if explain in (critical_points, occlusion_influence):
        assert len(explain(model, torch.randn(FEW + 20, 3))) == FEW + 20


def test_predictions_take_the_upward_axis(model, files):
    cloud = np.load(files[1])
    turned = cloud[:, [0, 2, 1]] * [1, 1, -1]  # Y up
    for method in (model.predict, model.predict_proba, model.embed):
        np.testing.assert_allclose(method(turned, up="y"), method(cloud), atol=1e-4)
    assert model.classify(turned, up="y")[0]["class"] == model.classify(cloud)[0]["class"]
    sets = pointset.from_arrays(cloud[None], [0])
    with pytest.raises(pointset.PointsetError, match="up is not for PointSets"):
        model.predict(sets, up="y")


def test_shapes_are_inspected_and_drawn_as_they_are_predicted(model, files, tmp_path):
    expected = [pointset.explain.inspect_shape(model, file) for file in files]
    points = [model.prepare(file).points for file in files]
    for shapes in (files, tuple(files), [read_mesh(files[0]), np.load(files[1])]):
        for found, same in zip(pointset.explain.inspect_shape(model, shapes), expected, strict=True):
            torch.testing.assert_close(found.prediction.logits, same.prediction.logits)
            torch.testing.assert_close(found.maps[0].weights, same.maps[0].weights)
    maps = pointset.attention_maps(model, files)
    for row, cloud in enumerate(points):
        torch.testing.assert_close(maps[0][row].points, cloud)
    one = pointset.attention_maps(model, files[0])
    found, same = (pointset.viz.draw_maps(one[0], *given, heads=[0], queries=[0]) for given in ((), (points[0],)))
    assert found._repr_png_() == same._repr_png_()
    assert pointset.viz.make_page(one).html == pointset.viz.make_page(one, points[0]).html
    assert pointset.viz.export_cloud(one[0], None, tmp_path / "a.ply").exists()
    assert len(pointset.viz.draw_clouds(files).axes) == 2
    assert "predicted" in pointset.viz.gallery(model, files).html
    with pytest.raises(pointset.PointsetError, match="points are missing"):
        pointset.viz.draw_maps(replace(one[0], points=None))


def test_sets_are_taken_by_all(model):
    sets = pointset.load_dataset("shapes10", "test", points=FEW, normalize=model.preparation.normalize, progress=False)
    sets = sets.subset([0, 40, 80])
    expected = pointset.evaluate(model, sets)
    assert model.predict(sets).tolist() == expected.logits.argmax(axis=1).tolist()
    np.testing.assert_allclose(model.predict_proba(sets), expected.prediction.probabilities, atol=1e-6)
    assert [row["name"] for row in model.classify(sets)] == sets.names
    inspected = pointset.explain.inspect_shape(model, sets)
    torch.testing.assert_close(torch.cat([one.prediction.logits for one in inspected]), expected.prediction.logits)
    assert len(pointset.viz.draw_clouds(sets).axes) == 3
    np.testing.assert_allclose(model.embed(sets), pointset.evaluation.embed(model, sets), atol=1e-6)
    maps, single = (pointset.attention_maps(model, points) for points in (sets, sets.points[1]))
    torch.testing.assert_close(maps[0][1].weights, single[0].weights, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", [NAME, "features+size"])
def test_the_transformer_takes_files(name, files):
    embedding = pointset.PointSetEmbedding(name)
    rows = embedding.fit_transform(files)
    assert rows.shape[0] == 2
    np.testing.assert_allclose(rows[1:], embedding.transform([np.load(files[1])]), atol=1e-4)


class Plain(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, points, mask=None):
        return self.layer(points).amax(dim=1)


@pytest.mark.parametrize("make", [Plain, lambda: pointset.create_model("rff-max", classes=2, dim=8)])
def test_a_model_without_a_preparation_is_reported_at_the_first_evaluate_or_predict(make):
    X = np.random.default_rng(0).normal(size=(8, 30, 3)) + 5
    sets, model = pointset.from_arrays(X, [0, 1] * 4), make()
    with pytest.warns(UserWarning, match=r"no preparation, and the sets have normalize='unit-sphere'"):
        pointset.evaluate(model, sets)
    if hasattr(model, "predict"):
        with pytest.warns(UserWarning, match="no preparation: points are not normalised"):
            model.predict(X)
    with warnings.catch_warnings(action="error"):
        pointset.evaluate(model, sets.normalized("none"))
        warnings.filterwarnings("ignore", "training ends at chance")
        pointset.fit(model, sets, pointset.Recipe(epochs=1), progress=False)
        pointset.evaluate(model, sets)
        if hasattr(model, "predict"):
            model.predict(X)
