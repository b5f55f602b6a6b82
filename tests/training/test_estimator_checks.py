"""The checks of scikit-learn for estimators, with clouds in place of rows; those that cannot apply are named."""

from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from sklearn.utils import estimator_checks

from pointset import PointSetClassifier, PointSetEmbedding

SMALL = {"model": "rff-max", "dim": 8, "epochs": 1, "batch_size": 16, "random_state": 0}
OTHERS = {
    "check_classifier_data_not_an_array": "arrays, tensors and lists are accepted",
    "check_dtype_object": "an array of objects is a list of clouds of several sizes",
    "check_estimator_sparse_array": "a sparse array has two axes",
    "check_estimator_sparse_matrix": "a sparse array has two axes",
    "check_estimator_sparse_tag": "a sparse array has two axes",
    "check_estimators_empty_data_messages": "it expects words about rows",
    "check_estimators_nan_inf": "it makes its own rows, see test_estimator",
    "check_fit2d_predict1d": "it expects words about rows",
    "check_methods_subset_invariance": "it makes its own rows, see test_estimator",
    "check_n_features_in": "features are the numbers of a point",
    "check_transformer_general": "it takes the shape of X for [rows, features]",
}
"""Checks of scikit-learn that do not apply to clouds; each must fail, and a check that is not here must pass."""
COUNTED = {"check_n_features_in_after_fitting": "features are the numbers of a point"}
OWN = {
    "Classifier": COUNTED,
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


@pytest.fixture(autouse=True)
def clouds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each check clouds [N, d, 3], of which the first coordinates are its rows [N, d]."""

    def lifted(estimator: Any, X: Any, X_test: Any = None, **_: Any) -> Any:
        def lift(rows: Any) -> Any:
            return np.stack([rows, rows[:, ::-1], np.broadcast_to(np.arange(rows.shape[1]), rows.shape)], axis=2)

        return lift(X) if X_test is None else (lift(X), lift(X_test))

    def first(estimator: Any, y: Any) -> Any:
        return y[:, 0] if y.ndim == 2 and y.shape[1] == 3 else y

    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_X", lifted)
    monkeypatch.setattr(estimator_checks, "_enforce_estimator_tags_y", first)


@pytest.mark.filterwarnings("ignore")
@estimator_checks.parametrize_with_checks(
    [Classifier(**SMALL), Embedding()],
    expected_failed_checks=lambda estimator: OTHERS | OWN[type(estimator).__name__],
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    try:
        check(estimator)
    except SkipTest as error:
        pytest.xfail(str(error))
