"""The contract of scikit-learn's regressors for clouds, and its tools; what it shares is in test_estimator."""

import copy
import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags

from pointset import PointSetClassifier, PointSetRegressor
from pointset.errors import PointsetError

SMALL = {"model": "rff-max", "dim": 8, "epochs": 1, "batch_size": 16, "random_state": 0}
RNG = np.random.default_rng(0)
SIDES = 10 ** RNG.uniform(0, 1, (40, 1)) * RNG.uniform(0.5, 1.5, (40, 3))
X = RNG.uniform(-0.5, 0.5, (40, 48, 3)) * SIDES[:, None] + 100
Y = np.stack([SIDES.prod(axis=1), SIDES.sum(axis=1)], axis=1)
RAGGED = [cloud[: 48 - index % 5] for index, cloud in enumerate(X)]


def small(**changes) -> PointSetRegressor:
    return PointSetRegressor(**{**SMALL, **changes})


def test_parameters_are_those_of_the_classifier() -> None:
    mine, theirs = (inspect.signature(kind).parameters for kind in (PointSetRegressor, PointSetClassifier))
    assert set(mine) == set(theirs)
    assert mine["model"].default != theirs["model"].default
    assert clone(small(loss="huber")).get_params() == small(loss="huber").get_params()
    assert is_regressor(small())
    assert get_tags(small()).target_tags.multi_output


@pytest.mark.parametrize("clouds", [X, RAGGED], ids=["array", "ragged"])
def test_the_default_learns_within_seconds(clouds) -> None:
    scores = cross_val_score(PointSetRegressor(), clouds, Y[:, 0], cv=2, error_score="raise")
    assert (scores > 0.5).all()
    assert cross_val_predict(PointSetRegressor("features-ridge"), clouds, Y, cv=2).shape == (40, 2)


@pytest.mark.parametrize(("y", "shape"), [(Y[:, 0], (40,)), (Y, (40, 2)), (Y[:, 0].astype(int).tolist(), (40,))])
def test_numbers_have_the_shape_of_y_and_a_copy_predicts_the_same(y, shape) -> None:
    fitted = small().fit(X, y)
    values = fitted.predict(X)
    assert (values.shape, values.dtype) == (shape, np.float64)
    assert (fitted.n_features_in_, fitted.n_iter_, fitted.n_outputs_) == (3, 1, shape[-1] if len(shape) > 1 else 1)
    assert fitted.score(X, y) == r2_score(y, values)
    for copied in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), clone(fitted).fit(X, y)):
        assert np.array_equal(copied.predict(X), values)
    np.testing.assert_allclose(fitted.predict(X[::-1]), values[::-1], rtol=1e-4)


def test_intervals() -> None:
    numbers = PointSetRegressor().fit(X, Y).predict_interval(X[:5], level=0.8)
    assert numbers.low.shape == (5, 2)
    assert (numbers.low < numbers.high).all()
    gaussian = small(loss="gaussian", validation=0.3).fit(X, Y).predict_interval(X[:5], level=0.8)
    assert len(np.unique((np.log(gaussian.high) - np.log(gaussian.low)).round(3))) > 1, "each its own deviation"
    with pytest.raises(PointsetError, match="level"):
        small().fit(X, Y).predict_interval(X, level=1.5)


def test_tools_of_scikit_learn() -> None:
    steps = make_pipeline(FunctionTransformer(lambda clouds: clouds / 10), small())
    grid = {"pointsetregressor__model": ["rff-max", "features-ridge"], "pointsetregressor__loss": ["absolute"]}
    search = GridSearchCV(steps, grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_["pointsetregressor__model"] == "features-ridge"
    scaled = TransformedTargetRegressor(small(), transformer=StandardScaler()).fit(X, Y[:, 0])
    assert scaled.predict(X).shape == (40,)


@pytest.mark.parametrize(
    "options", [{"model": "auto", "budget": 1.0}, {"start": "rff-max.modelnet40-1024", "steps": 4}]
)
def test_the_best_within_a_budget_and_trained_weights(options) -> None:
    fitted = PointSetRegressor(random_state=0, **options).fit(X, Y[:, 0])
    assert fitted.score(X, Y[:, 0]) > 0.5


@pytest.mark.parametrize(
    ("changes", "y", "words"),
    [
        ({}, None, "y is None"),
        ({}, Y[:9], "each of the 40 clouds of X, got 9"),
        ({}, np.where(np.arange(40) == 3, np.nan, Y[:, 0]), "NaN"),
        ({}, ["heavy"] * 40, "could not convert|String"),
        ({}, np.ones(40), "y is 1 for all 40 training shapes"),
        ({"model": "features-svm"}, Y, "features-ridge"),
        ({"loss": "cubic"}, Y, "loss must be"),
        ({"class_weights": "balanced"}, Y, "class_weights"),
    ],
)
def test_what_cannot_be_fitted_is_refused(changes, y, words) -> None:
    regressor = small(**changes)
    with pytest.raises(ValueError, match=words):
        regressor.fit(X, y)
    assert not hasattr(regressor, "model_")
    with pytest.raises(NotFittedError):
        regressor.predict(X)
