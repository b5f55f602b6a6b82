"""Point clouds and errors in the types that scikit-learn expects, and embeddings of clouds as a transformer."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from pointset.baselines.models import BASELINES, EMBEDDERS
from pointset.data.arrays import FLAT, as_array
from pointset.data.normalize import log_size
from pointset.data.options import Preparation
from pointset.data.preparation import prepare
from pointset.data.readers.clouds import Cloud, require_cloud
from pointset.data.readers.meshes import Mesh
from pointset.data.unusable import LEAVE_OUT
from pointset.errors import PointsetError, described
from pointset.inputs import InputError
from pointset.training.processes import find_device
from pointset.zoo.classifiers import SetClassifier
from pointset.zoo.models import create_model, load_model

SHAPE_KINDS = str | Path | Mesh | Cloud
"""Types of shapes that a model itself prepares."""
FILE_POINTS = 1024
"""Number of points of a file from which classical features are computed."""


def clouds_of(X: Any) -> Any:
    """Return an array or a tensor [N, n, d] unchanged, and a list or an object array as a list of clouds and files."""
    if isinstance(X, np.ndarray | Tensor) and X.ndim == 3:
        return X
    if not isinstance(X, Sequence | np.ndarray) or isinstance(X, str | bytes) or getattr(X, "ndim", 1) != 1:
        alone = FLAT if getattr(X, "ndim", 0) == 2 else ""
        raise InputError(f"X must be an array [N, n, d] or a list of clouds [n, d], got {described(X)}{alone}")
    return [cloud if isinstance(cloud, np.ndarray | Tensor | SHAPE_KINDS) else np.asarray(cloud) for cloud in X]


def coordinates_of(shape: SHAPE_KINDS, points: int = FILE_POINTS) -> np.ndarray:
    """Return the coordinates [n, 3] of a file, mesh or cloud in its original unit, with n <= `points`."""
    return prepare(shape, Preparation(points=points, normalize="none")).raw


@contextmanager
def value_errors() -> Iterator[None]:
    """Re-raise PointsetError as ValueError, as scikit-learn's tools expect."""
    try:
        yield
    except PointsetError as error:
        message = str(error).replace(f", or {LEAVE_OUT}", "")
        if isinstance(error, ValueError) and message == str(error):
            raise
        raise InputError(message) from error


class CloudEstimator(BaseEstimator):
    """Base class of estimators that take clouds as X."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags


class PointSetEmbedding(ClassNamePrefixFeaturesOutMixin, TransformerMixin, CloudEstimator):
    """Embeddings of a trained model, or classical features, for pipelines. Each cloud or file has one feature vector.

    Args:
        model: the folder of a run, the name of a pretrained model, or the features of a baseline. These are "features",
            "surface", "embedding" (of four pretrained models), "size" (the log of the root mean square radius of a
            cloud; the other features do not depend on the size), or several, such as "features+surface+size".
        device: as in `Recipe`.

    Attributes:
        model_: the trained model, or the baseline that computes the features. None for "size" alone.
        n_features_in_: number of values per point.

    Example:
        >>> from sklearn.pipeline import make_pipeline
        >>> from sklearn.svm import SVC
        >>> pipeline = make_pipeline(pointset.PointSetEmbedding("isab16-pma.shapes10"), SVC())
        >>> pipeline.fit(X[:16], y[:16]).predict(X[16:]).shape
        (8,)
    """

    def __init__(self, model: str = EMBEDDERS["embedding"][0], device: str = "auto") -> None:
        self.model, self.device = model, device

    def fit(self, X: Any, y: Any = None) -> Self:
        """Load the model. X is not used.

        Raises:
            InputError: the model does not exist. It is both a PointsetError and a ValueError.
        """
        rows = [name for name in str(self.model).split("+") if name != "size"]
        baseline = f"{'+'.join(rows)}-svm"
        self.model_: Any = None
        with value_errors():
            if baseline in BASELINES:
                self.model_ = create_model(baseline, classes=2)
            elif rows:
                try:
                    self.model_ = load_model(self.model)
                except PointsetError as error:
                    raise PointsetError(f"{error}, or features such as surface+size") from error
        self._size = self.model == "size" or (baseline in BASELINES and "size" in self.model.split("+"))
        self.n_features_in_ = self.model_.inputs if rows else 3
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Return embeddings, float32 [N, d], of clouds [N, n, 3] or of a list of clouds or files.

        See `Classifier.embed`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: X does not consist of clouds or files.
        """
        check_is_fitted(self, "model_")
        return self._rows(X)

    @property
    def _n_features_out(self) -> int:  # the same for every cloud
        return self._rows(np.random.default_rng(0).random((1, 1024, self.n_features_in_))).shape[1]

    def _rows(self, X: Any) -> np.ndarray:
        blocks = []
        with value_errors():
            clouds = [self._checked(index, cloud) for index, cloud in enumerate(clouds_of(X))]
            if self.model_ is not None:
                blocks.append(np.asarray(self.model_.to(find_device(self.device)).embed(clouds)))
            if self._size:
                sizes = [log_size(torch.from_numpy(cloud[:, :3].astype(np.float64))[None]) for cloud in clouds]
                blocks.append(torch.cat(sizes).float().numpy()[:, None])
        return np.hstack(blocks)

    def _checked(self, index: int, cloud: Any) -> Any:
        if isinstance(cloud, SHAPE_KINDS):
            is_network = isinstance(self.model_, SetClassifier)
            return cloud if is_network else coordinates_of(cloud)
        rows = as_array(cloud)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            raise InputError(f"cloud {index}: points must be [n, {self.n_features_in_}], got {described(cloud)}")
        try:
            require_cloud(rows[:, :3])  # needed if "size" is the only feature
        except PointsetError as error:
            raise InputError(f"cloud {index}: {error}") from error
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        tags.no_validation = True  # `fit` does not use X
        return tags
