"""The embedding of a trained model as a transformer of scikit-learn."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from pointset.baselines.models import EMBEDDERS
from pointset.data.axes import Axis, turned_up
from pointset.training.clouds import clouds_of, value_errors
from pointset.training.devices import find_device
from pointset.training.loading import load_run


class PointSetEmbedding(TransformerMixin, BaseEstimator):
    """The embedding of a trained model, for pipelines: clouds in, rows of numbers out.

    Args:
        model: the folder of a run, or a trained model that comes with the package.
        up: the axis that points up in X; clouds are turned to that of the model's shapes.
        device: see `pointset.fit`.

    Attributes:
        model_: the trained model.
        n_features_in_: numbers per point.

    Example:
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.svm import SVC
        >>> pipeline = make_pipeline(pointset.PointSetEmbedding("rff-max.modelnet40-1024"), SVC())
        >>> pipeline.fit(X[:16], y[:16]).predict(X[16:]).shape
        (8,)
    """

    def __init__(self, model: str = EMBEDDERS[0], up: Axis = "z", device: str = "auto") -> None:
        self.model, self.up, self.device = model, up, device

    def fit(self, X: Any, y: Any = None) -> Self:
        """Load the model; nothing is learned from X.

        Raises:
            InputError: the model does not exist; a PointsetError and a ValueError.
        """
        with value_errors():
            self.model_, description = load_run(self.model)
            self.model_up_ = description["data"]["up"]
        self.n_features_in_ = self.model_.inputs
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Rows float32 [N, d] of clouds [N, n, 3], or of a list of clouds; see `Classifier.embed`.

        Raises:
            NotFittedError: before `fit`.
            InputError: X is something else than N clouds.
        """
        check_is_fitted(self, "model_")
        with value_errors():
            model = self.model_.to(find_device(self.device))
            clouds = [turned_up(np.asarray(cloud), self.up, self.model_up_) for cloud in clouds_of(X)]
            return np.asarray(model.embed(clouds))
