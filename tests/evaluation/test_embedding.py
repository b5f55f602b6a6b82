"""Embeddings of sets and files, their files, and neighbours by them."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import pointset
from pointset.data.catalogue.folders import ShapeFile
from pointset.data.preparation import Preparation
from pointset.evaluation.embedding import Embedded, embed_files, load_embedded
from pointset.evaluation.shape_files import Failure
from pointset.explain.importance import similarity_influence

NAME = "isab16-pma.shapes10"


@pytest.fixture(scope="module")
def model() -> Any:
    return pointset.load_run(NAME)[0]


def test_rows_are_what_the_head_gets_of_clouds_of_any_size(model, clouds_folder):
    sets = pointset.load_dataset(clouds_folder, "test", 24, normalize=model.preparation.normalize)
    rows = pointset.embed(model, sets)
    assert rows.dtype == np.float32
    with torch.inference_mode():
        assert torch.allclose(model.head(torch.from_numpy(rows)), model(sets.points), atol=1e-4)
    found = model.embed([100 + 7 * sets.points[0], sets.points[1], sets.points[2, :9]])  # normalised, of any size
    assert isinstance(found, torch.Tensor)
    assert torch.allclose(found[:2], torch.from_numpy(rows[:2]), atol=1e-2)
    assert torch.allclose(found[2], model.embed(sets.points[2, :9])[0], atol=1e-4)


def test_the_transformer_works_in_a_pipeline(clouds_folder):
    train, test = (pointset.load_dataset(clouds_folder, split, 64) for split in ("train", "test"))
    pipeline = make_pipeline(pointset.PointSetEmbedding(NAME), SVC()).fit(train.points.numpy(), train.labels.numpy())
    assert pipeline.score(test.points.numpy(), test.labels.numpy()) > 0.8
    turned = pointset.PointSetEmbedding(NAME, up="y").fit_transform(test.points.numpy()[:, :, [0, 2, 1]] * [1, 1, -1])
    assert np.allclose(turned, pipeline[0].transform(test.points.numpy()), atol=1e-3)
    with pytest.raises(ValueError, match="unknown"):
        pointset.PointSetEmbedding("unknown").fit(None)


def test_normals_are_turned_with_their_points(monkeypatch):
    trained = pointset.create_model("rff-max", classes=3, inputs=6, dim=8)
    trained.preparation = Preparation(features=("normals",), inputs=6, normalize="center-standardize")
    monkeypatch.setattr("pointset.training.embedding.load_run", lambda _: (trained, {}))
    X = np.random.default_rng(0).normal(size=(4, 32, 6)).astype(np.float32)
    y_up = X[..., [0, 2, 1, 3, 5, 4]] * np.float32([1, 1, -1, 1, 1, -1])
    rows = pointset.PointSetEmbedding("runs/mine", up="z").fit_transform(X)
    np.testing.assert_allclose(pointset.PointSetEmbedding("runs/mine", up="y").fit_transform(y_up), rows, atol=1e-5)


def test_a_file_of_rows_gives_the_same_back(tmp_path):
    rows = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    embedded = Embedded(NAME, ["a/0.off", "b/007", "c, d"], ["a", "b", ""], rows, ["/a/0.off", "/b/007", "/c, d"])
    embedded.save(tmp_path / "rows.npz")
    loaded = load_embedded(tmp_path / "rows.npz")
    assert np.allclose(loaded.rows, embedded.rows)
    for name in ("model", "names", "classes", "files"):
        assert getattr(loaded, name) == getattr(embedded, name)


@pytest.mark.parametrize("change", ["another file", "one dimension", "not finite", "fewer names", "whole numbers"])
def test_other_files_and_rows_of_another_form_are_refused_in_one_sentence(change, tmp_path):
    rows, names = np.ones((4, 8), np.float32), list("abcd")
    Embedded("m", names, names, rows, names).save(tmp_path / "rows.npz")
    arrays = dict(np.load(tmp_path / "rows.npz"))
    other = rows.copy()
    other[2, 3] = np.nan
    changes = {"one dimension": rows[:, 0], "not finite": other, "whole numbers": rows.astype(int)}
    arrays |= {"name": arrays["name"][:3]} if change == "fewer names" else {"embedding": changes.get(change, rows)}
    np.savez(tmp_path / "rows.npz", **({"x": rows} if change == "another file" else arrays))
    with pytest.raises(pointset.PointsetError, match=r"rows\.npz is not a file of embeddings"):
        load_embedded(tmp_path / "rows.npz")


def test_files_that_cannot_be_read_stop_nothing(model, tmp_path):
    rng = np.random.default_rng(0)
    for number in (0, 2):
        np.save(tmp_path / f"{number}.npy", rng.normal(size=(40, 3)))
    (tmp_path / "1.npy").write_text("nothing")
    shapes = [ShapeFile(path, path.name) for path in sorted(tmp_path.iterdir())]
    first, failure, last = embed_files(model, shapes)
    assert isinstance(failure, Failure)
    for shape, row in (first, last):
        assert np.allclose(row, model.embed(np.load(shape.path))[0], atol=1e-5)


def test_a_removed_patch_changes_the_distance_by_its_influence(model):
    points = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    row = model.embed_sets(torch.randn(1, 30, 3, generator=torch.Generator().manual_seed(1)))[0].detach()
    influence = similarity_influence(model, points, row, patches=5)
    value = influence[0]
    kept = points[influence != value]
    with torch.inference_mode():
        distances = [(model.embed_sets(cloud[None])[0] - row).norm() for cloud in (kept, points)]
    assert torch.isclose(distances[0] - distances[1], value, atol=1e-4)
