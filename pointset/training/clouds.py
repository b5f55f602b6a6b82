"""Clouds and errors as scikit-learn's tools give and expect them."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pointset.errors import PointsetError, described
from pointset.inputs import InputError

CALLED = {"score": "attention_score"}
"""Fields of options under other names: an estimator has a method `score`."""


def clouds_of(X: Any) -> Any:
    """X with every cloud of a list as an array or a tensor."""
    if isinstance(X, np.ndarray | Tensor) and not (X.ndim == 1 and isinstance(X, np.ndarray)):
        return X
    if not isinstance(X, Sequence | np.ndarray) or isinstance(X, str | bytes):
        raise InputError(f"X must be an array [N, n, d] or a list of clouds [n, d], got {described(X)}")
    return [cloud if isinstance(cloud, np.ndarray | Tensor) else np.asarray(cloud) for cloud in X]


def sized(X: Any, points: int | None) -> Any:
    """Clouds of at most so many points; which ones depends on the number of a cloud's points alone."""
    X = clouds_of(X)
    if not isinstance(X, list) and X.ndim != 3:
        alone = ": for one cloud give X[None]" if X.ndim == 2 else ""
        raise InputError(f"X must be an array [N, n, d] or a list of clouds [n, d], got {described(X)}{alone}")
    if points is None:
        return X
    if not isinstance(X, list):
        return X[:, _places(X.shape[1], points)]
    return [cloud[_places(len(cloud), points)] if cloud.ndim else cloud for cloud in X]


def _places(count: int, points: int) -> NDArray[np.int64]:
    return np.random.default_rng(count).permutation(count)[: min(count, points)]


@contextmanager
def value_errors() -> Iterator[None]:
    """Let our errors be ValueErrors too, as scikit-learn's tools expect, and name fields as they are here."""
    try:
        yield
    except PointsetError as error:
        message = re.sub(r"^score(?= )", CALLED["score"], str(error))
        if isinstance(error, ValueError) and message == str(error):
            raise
        raise InputError(message) from error
