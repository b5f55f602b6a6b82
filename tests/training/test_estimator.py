"""The contract of scikit-learn's estimators for clouds: its own checks with clouds in place of rows, and its tools."""

import inspect
import pickle
import subprocess
import sys
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import estimator_checks
from sklearn.utils.validation import has_fit_parameter

import pointset
from pointset import ModelOptions, PointSetClassifier, PointSetEmbedding, PointsetError, PointSets, Recipe
from pointset.inputs import InputError

NAMES = np.array(["flat", "Long", "round"])
SMALL = {
    "model": "rff-max",
    "random_state": 0,
    "recipe": Recipe(epochs=1, batch_size=16),
    "options": ModelOptions(dim=8),
}


def small(**changes) -> PointSetClassifier:
    return PointSetClassifier(**SMALL).set_params(**changes)


@pytest.fixture(scope="module")
def X():  # noqa: N802 - as scikit-learn calls it
    """Clouds [24, 16, 3] of three proportions, far from the origin and in double precision."""
    clouds = np.random.default_rng(0).standard_normal((24, 16, 3))
    for label, stretch in enumerate(([1, 1, 0.1], [0.1, 0.1, 1], [1, 1, 1])):
        clouds[label::3] *= stretch
    return 100 + 10 * clouds


@pytest.fixture(scope="module")
def y():
    return NAMES[np.arange(24) % 3]


@pytest.fixture(scope="module")
def ragged(X):
    return [cloud[: 16 - index % 5] for index, cloud in enumerate(X)]


@pytest.fixture(scope="module")
def fitted(X, y):
    return small().fit(X, y)


def test_fields_of_recipe_and_options_are_parameters():
    parameters = PointSetClassifier().get_params()
    for name, values in (("recipe", vars(Recipe())), ("options", ModelOptions().flat())):
        assert {f"{name}__{field}": value for field, value in values.items()}.items() <= parameters.items()
    assert PointSetClassifier().get_params(deep=False).keys() == inspect.signature(PointSetClassifier).parameters.keys()
    assert pickle.loads(pickle.dumps(small())).get_params() == small().get_params()
    changed = clone(small(options__dim=16, options__heads=2, recipe__epochs=3, points=4))
    assert changed.options == ModelOptions.from_dict({"dim": 16, "heads": 2})
    assert (changed.recipe.epochs, changed.recipe.batch_size) == (3, 16)
    assert (changed.points, PointSetClassifier().recipe, PointSetClassifier().model) == (4, Recipe(), "isab16-pma")
    with pytest.raises(ValueError, match=r"Invalid parameter 'options__widht' .*: did you mean options__"):
        small(options__widht=8)
    with pytest.raises(ValueError, match="epochs must be a whole number"):
        small(recipe__epochs=0)


def test_the_seed_decides_everything(X, y, fitted):
    again = small().fit(X, y)
    expected = fitted.predict_proba(X)
    assert np.array_equal(again.predict_proba(X), expected)
    assert np.array_equal(again.fit(X, y).predict_proba(X), expected), "a second fit begins anew"
    assert not np.array_equal(small(random_state=1).fit(X, y).predict_proba(X), expected)
    mine = pointset.create_model("rff-max", classes=3, dim=8)
    sets = pointset.from_arrays(X, y.tolist(), sorted(NAMES))
    pointset.fit(mine, sets, Recipe(epochs=1, batch_size=16), progress=False)
    np.testing.assert_allclose(mine.predict_proba(X), expected, atol=1e-6)


def test_a_random_state_advances_and_none_means_that_of_numpy(X, y):
    state = np.random.RandomState(3)
    first, second = (small(random_state=state).fit(X, y).predict_proba(X) for _ in range(2))
    assert not np.array_equal(first, second)
    same = small(random_state=np.random.RandomState(3)).fit(X, y)
    assert np.array_equal(same.predict_proba(X), first)
    before = np.random.get_state()  # noqa: NPY002 - what None stands for
    np.random.seed(5)  # noqa: NPY002
    found = [small(random_state=None).fit(X, y).predict_proba(X)]
    np.random.seed(5)  # noqa: NPY002
    found.append(small(random_state=None).fit(X, y).predict_proba(X))
    np.random.set_state(before)  # noqa: NPY002
    assert np.array_equal(*found)


def test_a_prediction_depends_on_its_own_cloud_alone(X, y, ragged):
    order = np.random.default_rng(1).permutation(24)
    found = small(points=8).fit(X, y)
    whole = found.predict_proba(X)
    np.testing.assert_allclose(found.predict_proba(X[order]), whole[order], atol=1e-6)
    np.testing.assert_allclose(found.predict_proba(X[5:6]), whole[5:6], atol=1e-6)
    of_sizes = found.predict_proba(ragged)
    np.testing.assert_allclose(found.predict_proba([ragged[place] for place in order]), of_sizes[order], atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "clouds", "labels", "words"),
    [
        ({}, lambda X: X[0], lambda y: y, r"give one cloud as X\[None\], flattened clouds as X.reshape\(N, n, 3\)"),
        ({}, lambda X: X[:0], lambda y: y[:0], "class|at least one|minimum"),
        ({}, lambda X: X, lambda y: y[:9], "y must .* 24 clouds of X, got 9"),
        ({}, lambda X: X, lambda y: None, "y is None"),
        ({}, lambda X: X, lambda y: y[:1].repeat(24), "1 class"),
        ({"recipe": 5}, lambda X: X, lambda y: y, "recipe must be of type Recipe"),
        (
            {"recipe__train_points": (9, 99)},
            lambda X: X,
            lambda y: y,
            r"^train_points=\[9, 99\] .*--train-points ... 16",
        ),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(changes, clouds, labels, words, X, y):
    found = small(**changes)
    with pytest.raises(ValueError, match=words) as caught:
        found.fit(clouds(X), labels(y))
    assert "\n" not in str(caught.value)
    assert not hasattr(found, "classes_")


@pytest.mark.parametrize(
    ("clouds", "words"),
    [
        (lambda X: X[0], r"give one cloud as X\[None\], flattened clouds as X.reshape\(N, n, 3\)"),
        (lambda X: X[..., :2], r"\[B, n, 3\], got float64 \[24, \d+, 2\]"),
        (lambda X: [X[0], X[1][0]], "cloud 1"),
        (lambda X: [], "at least one"),
    ],
)
def test_what_cannot_be_predicted_is_refused(clouds, words, fitted, X):
    with pytest.raises(PointsetError, match=words) as caught:
        fitted.predict(clouds(X))
    assert isinstance(caught.value, ValueError)


def test_more_than_coordinates(X, y):
    wide = np.concatenate([X, np.ones((24, 16, 2))], axis=2)
    found = small().fit(wide, y)
    assert found.n_features_in_ == 5
    moved = wide + np.array([7, 7, 7, 0, 0])
    np.testing.assert_allclose(found.predict_proba(moved), found.predict_proba(wide), atol=1e-5)
    assert not np.allclose(found.predict_proba(wide + np.array([0, 0, 0, 1, 0])), found.predict_proba(wide), atol=1e-4)
    with pytest.raises(PointsetError, match=r"\[B, n, 5\]"):
        found.predict(X)


def test_a_grid_over_models_and_their_options_in_a_pipeline(X, y):
    steps = make_pipeline(FunctionTransformer(lambda clouds: clouds / 10), small(options__heads=2))
    grid = {"pointsetclassifier__model": ["rff-max", "isab4-pma+max"], "pointsetclassifier__options__dropout": [0.0]}
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(X, y)
    assert [one["pointsetclassifier__model"] for one in search.cv_results_["params"]] == ["rff-max", "isab4-pma+max"]
    assert search.predict_proba(X).shape == (24, 3)


def test_rows_become_columns_with_names(X):
    embedding = PointSetEmbedding("surface+size").set_output(transform="pandas")
    table = embedding.fit_transform(X)
    assert list(table) == embedding.get_feature_names_out().tolist()
    assert table.columns[-1] == f"pointsetembedding{table.shape[1] - 1}"


@pytest.mark.parametrize("model", ["size", "surface"])
def test_tensors_of_every_kind_have_the_rows_of_arrays(model, X):
    embedding = PointSetEmbedding(model).fit(X)
    tensors = [torch.tensor(cloud, requires_grad=True) for cloud in X]
    assert np.array_equal(embedding.transform(tensors), embedding.transform(X))
    assert np.allclose(
        embedding.transform(torch.tensor(X).bfloat16()), embedding.transform(torch.tensor(X).bfloat16().float())
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda X: X[..., :2], r"cloud 0: points must be \[n, 3\], got float64"),
        (lambda X: np.concatenate([X, X], 2), r"cloud 0: points must be \[n, 3\], got float64"),
        (lambda X: np.where(X[1, 0] == X, np.nan, X), "cloud 1: .* not finite"),
        (lambda X: np.ma.masked_less(X, X[2].min() + 1), "masked entries"),
        (lambda X: X[:1, :5] * 0, "cloud 0: .* no extent"),
    ],
)
def test_clouds_without_a_row_are_refused(change, words, X):
    with pytest.raises(ValueError, match=words):
        PointSetEmbedding("size").fit(X).transform(change(X))


def test_an_embedding_of_an_unknown_model_is_refused(X):
    with pytest.raises(ValueError, match="or features such as"):
        PointSetEmbedding("featurs").fit(X)


ELSEWHERE = """import joblib, numpy as np
np.save("elsewhere.npy", [one.predict_proba(np.load("X.npy")) for one in joblib.load("found.joblib")])"""


@pytest.mark.slow
def test_a_fitted_one_is_read_in_another_process(X, y, tmp_path):
    found = [PointSetClassifier("features-svm", random_state=0).fit(X, y), small(model="rff-aggr.softmax").fit(X, y)]
    np.save(tmp_path / "X.npy", X)
    joblib.dump(found, tmp_path / "found.joblib")
    subprocess.run([sys.executable, "-c", ELSEWHERE], cwd=tmp_path, check=True, timeout=120)
    expected = [one.predict_proba(X) for one in found]
    np.testing.assert_allclose(np.load(tmp_path / "elsewhere.npy"), expected, atol=1e-6)


def test_calibration(ragged, y):
    found = CalibratedClassifierCV(small(), cv=2, ensemble=False).fit(ragged, y)
    np.testing.assert_allclose(found.predict_proba(ragged).sum(axis=1), 1.0)
    assert found.classes_.tolist() == sorted(NAMES)


def test_baselines_and_pretrained_models(clouds_folder):
    train, test = (pointset.load_dataset(clouds_folder, split, 64) for split in ("train", "test"))
    of_names = [
        {"model": "features-svm"},
        {"model": "isab16-pma.modelnet40-1024", "recipe": Recipe(steps=20)},
    ]
    for options in of_names:
        classifier = PointSetClassifier(random_state=0, **options).fit(train.points.numpy(), train.labels.numpy())
        assert classifier.score(test.points.numpy(), test.labels.numpy()) > 0.8
    assert classifier.model_.spec.pretrained == "isab16-pma.modelnet40-1024"


def test_words_of_scikit_learn_are_answered_and_options_without_an_effect_refused(X, y):
    for options in ({"options": ModelOptions(dim=64)}, {"recipe": Recipe(epochs=2)}):
        with pytest.raises(InputError, match=r"has no effect on model='features-svm': leave it out, or name a network"):
            PointSetClassifier("features-svm", **options).fit(X, y)
    assert not has_fit_parameter(small(), "sample_weight"), "tools that weight samples pass none"
    with pytest.raises(InputError, match="labels of the types int, str: give labels of one type"):
        small().fit(X[:2], np.array(["x", 1], dtype=object))
    bad = X.copy()
    bad[0, 0, 0] = np.nan
    with pytest.raises(InputError) as refused:
        small().fit(bad, y)
    assert "on_error" not in str(refused.value)


def test_files_are_fitted_as_they_are_predicted(X, y, tmp_path):
    files = [tmp_path / f"{number}.npy" for number in range(len(X))]
    for file, cloud in zip(files, X, strict=True):
        np.save(file, cloud)
    of_files, of_clouds = (small().fit(given, y).predict_proba(files) for given in (files, X))
    np.testing.assert_allclose(of_files, of_clouds, atol=1e-5)


def test_groups_are_on_one_side_of_the_validation_split(X, monkeypatch):
    seen = []
    kept = PointSets.split_validation

    def split(self, fraction, seed):
        seen.append(self.groups.tolist())
        return kept(self, fraction, seed)

    monkeypatch.setattr(PointSets, "split_validation", split)
    classifier = small(recipe__validation=0.3)
    classifier.fit(X[:12], ["a", "b"] * 6, groups=[f"object {row // 4}" for row in range(12)])
    assert seen == [[row // 4 for row in range(12)]]
    with pytest.raises(PointsetError, match="groups must be one for each of the 12 clouds, got 3"):
        classifier.fit(X[:12], ["a", "b"] * 6, groups=[1, 2, 3])


OTHERS = {
    "check_classifier_data_not_an_array": "arrays, tensors and lists are accepted",
    "check_dtype_object": "an array of objects is a list of clouds of several sizes",
    "check_estimator_sparse_array": "a sparse array has two axes",
    "check_estimator_sparse_matrix": "a sparse array has two axes",
    "check_estimator_sparse_tag": "a sparse array has two axes",
    "check_estimators_empty_data_messages": "it expects words about rows",
    "check_estimators_nan_inf": "it makes its own rows; see above",
    "check_fit2d_predict1d": "it expects words about rows",
    "check_methods_subset_invariance": "it makes its own rows; see above",
    "check_n_features_in": "features are the numbers of a point",
    "check_transformer_general": "it takes the shape of X for [rows, features]",
}
"""Checks of scikit-learn that do not apply to clouds; each must fail, and a check that is not here must pass."""
OWN = {
    "Classifier": {
        "check_n_features_in_after_fitting": "features are the numbers of a point",
        "check_parameters_default_constructible": "recipe and options are frozen dataclasses",
    },
    "Embedding": {},
}


class Rows:
    """An estimator for which scikit-learn makes its checks: for one of 3-D input alone it makes none."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = True
        if tags.classifier_tags:
            tags.classifier_tags.poor_score = True  # one epoch
        return tags


class Classifier(Rows, PointSetClassifier):
    pass


class Embedding(Rows, PointSetEmbedding):
    pass


@pytest.fixture
def lifted_rows(monkeypatch):
    """Give each check clouds [N, d, 3], of which the first coordinates are its rows [N, d]."""

    def lifted(estimator: Any, X: Any, X_test: Any = None, **_: Any) -> Any:
        def lift(rows: Any) -> Any:
            return np.stack([rows, rows[:, ::-1], np.broadcast_to(np.arange(rows.shape[1]), rows.shape)], axis=2)

        return lift(X) if X_test is None else (lift(X), lift(X_test))

    def first(estimator: Any, y: Any) -> Any:
        return y[:, 0] if y.ndim == 2 and y.shape[1] == 3 else y

    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_X", lifted)
    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_y", first)


@pytest.mark.usefixtures("lifted_rows")
@pytest.mark.filterwarnings("ignore")
@estimator_checks.parametrize_with_checks(
    [Classifier(**SMALL), Embedding()], expected_failed_checks=lambda estimator: OTHERS | OWN[type(estimator).__name__]
)
def test_scikit_learns_own_checks(estimator, check):
    try:
        check(estimator)
    except SkipTest as error:
        pytest.xfail(str(error))
