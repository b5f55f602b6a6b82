"""Classifiers and embeddings for scikit-learn: cross-validation, grid search, pipelines and calibration."""

import copy
import dataclasses
import inspect
import numbers
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d
from torch import Tensor, nn

from pointset.baselines.models import BASELINES, EMBEDDERS
from pointset.data.arrays import from_arrays
from pointset.data.axes import Axis, turned_up
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import PointsetError, described, quoted
from pointset.inputs import InputError
from pointset.training.automatic import BUDGET, fit_automatic, transfer_recipe
from pointset.training.devices import find_device
from pointset.training.history import Fitted
from pointset.training.loading import load_run
from pointset.training.loop import fit
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_model
from pointset.zoo.options import ModelOptions
from pointset.zoo.predicting import cloud_batches, predict
from pointset.zoo.transfer import start_from

DEFAULT = "features+surface+embedding-svm"
"""Chosen on labeled_db and modelnet9_obj; see scripts/experiments/NOTES.md."""
DATA = ("normalize", "up")
"""Fields of `DataOptions` that are for arrays; `points` has another default."""
CALLED = {"score": "attention_score"}
"""Fields under other names: an estimator has a method `score`."""


class PointSetClassifier(ClassifierMixin, BaseEstimator):
    """A model of the zoo with its data options and recipe, as a scikit-learn estimator.

    X is an array or a tensor [N, n, d], or N clouds [n_i, d] of several sizes as a list or an array of objects. The
    first three numbers of a point are its coordinates, in any unit: they are normalised here. y has N labels of any
    kind. Every parameter is an option of its own, so that `GridSearchCV` can go through models and poolings as through
    widths and learning rates.

    Args:
        model: a name of the zoo, such as "isab16-pma", or of a baseline; see `list_models`. The default, a baseline, is
            fitted to some hundred clouds within seconds: a support vector machine on classical features and embeddings
            of trained models. It reads coordinates alone, and fields of `Recipe` and `ModelOptions` do not change it.
            "auto" takes the best classifier within `budget`, as `pointset train` without a model does, and chooses
            normalisation and recipe itself.
        start: a trained model that comes with the package, or the folder of a run: training begins from its weights,
            and `model` is ignored. Fields of `Recipe` that are given replace those of `transfer_recipe`.
        budget: core-seconds for "auto".
        points: of each set: every epoch draws as many from each cloud anew, and a prediction takes a fixed choice of as
            many. None takes all.
        normalize: of each cloud; see `DataOptions`, and there `up`.
        random_state: of the weights, of all that is drawn in training, and of the validation split: a seed, a
            RandomState, or None for numpy's global one.
        progress: show the progress of a training; see `pointset.fit`.
        options: the fields of `Recipe` (epochs, batch_size, learning_rate, ...) and of `ModelOptions` (dim, heads,
            dropout, ...; its `score` is `attention_score`). Those that the model does not use are ignored. Early
            stopping: `validation=0.1, patience=10`.

    Attributes:
        classes_: the labels, sorted; columns of `predict_proba` are in this order.
        n_features_in_: numbers per point.
        model_: the trained model of the zoo, for `attention_maps` and whatever else takes one.
        history_: one row for each epoch; see `Fitted`.
        n_iter_: epochs that were trained.

    Example:
        >>> classifier = pointset.PointSetClassifier("rff-max", dim=16, epochs=2, random_state=0)
        >>> classifier.fit(X[:16], y[:16]).predict_proba(X[16:]).shape
        (8, 2)
        >>> classifier.classes_.tolist()
        ['flat', 'round']
    """

    model: str
    start: str | None
    budget: float
    points: int | None
    normalize: str
    up: str | None
    device: str
    progress: bool
    random_state: Any

    def __init__(self, model: str = DEFAULT, **options: Any) -> None:
        given = inspect.signature(PointSetClassifier).bind(model, **options)
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    def fit(self, X: Any, y: Any) -> Self:
        """Train from the beginning.

        Args:
            X: N clouds, see the class.
            y: N labels.

        Raises:
            InputError: X or y is something else, or an option is wrong; a PointsetError and a ValueError.
        """
        labels = _labels(y)
        return self._begin(X, labels, np.unique(labels))

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Train for `epochs` more, with a new schedule from the weights that are there; the first call begins as `fit`.

        Args:
            X: N clouds; there must be two classes among them.
            y: N labels.
            classes: all labels that will come; those of y when None. Only of the first call.

        Raises:
            InputError: as for `fit`, or y has a label that is not a class.
        """
        labels = _labels(y)
        if self.model in ("auto", *BASELINES) and self.start is None:
            raise InputError(f"partial_fit needs a network, got model={self.model!r}: name one, or give start")
        if not hasattr(self, "model_"):
            return self._begin(X, labels, np.unique(labels if classes is None else _labels(classes)))
        if classes is not None and not np.array_equal(np.unique(_labels(classes)), self.classes_):
            raise InputError(f"classes are {_few(classes)}, and were {_few(self.classes_)} in the first call")
        sets = self._sets(X, labels, self.classes_)
        return self._train(copy.deepcopy(self.model_), sets, self.classes_, self._next_seed, self.history_)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities float64 [N, classes], in the order of `classes_`.

        Raises:
            NotFittedError: before `fit`.
            InputError: X is something else than N clouds.
        """
        check_is_fitted(self, "model_")
        with value_errors():
            model: Any = self.model_.to(find_device(self.device))
            batches = cloud_batches(_sized(X, self.points), inputs=model.inputs, normalize=model.normalize)
            return predict(model, batches).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest label of each cloud [N], of `classes_`; errors as for `predict_proba`."""
        indices = self.predict_proba(X).argmax(axis=1)
        return self.classes_[indices]

    def _seed(self) -> int:
        """The seed of the first training: `random_state` itself if it is one, as in `pointset.fit`."""
        is_seed = isinstance(self.random_state, numbers.Integral)
        return int(self.random_state if is_seed else check_random_state(self.random_state).randint(2**31 - 1))

    def _begin(self, X: Any, labels: np.ndarray, classes: np.ndarray) -> Self:
        sets, seed = self._sets(X, labels, classes), self._seed()
        with value_errors():
            if self.start is not None:
                trained, description = load_run(self.start)
                up = description["data"]["up"]
                model = start_from(trained, sets.classes, sets.up, trained_up=up, seed=seed, start=str(self.start))
            elif self.model == "auto":
                chosen = fit_automatic(sets, budget=self.budget, seed=seed, progress=self.progress)
                return self._keep(chosen.fitted, sets, classes, seed)
            else:
                options = ModelOptions.from_dict(self._fields(ModelOptions))
                model = create_model(self.model, len(classes), options, inputs=sets.inputs, seed=seed)
        return self._train(model, sets, classes, seed)

    def _train(
        self,
        model: nn.Module,
        sets: PointSets,
        classes: np.ndarray,
        seed: int,
        before: Sequence[dict[str, Any]] = (),
    ) -> Self:
        """Train a model further; what came of it is kept where nothing was wrong."""
        with value_errors():
            recipe = Recipe.from_dict(self._fields(Recipe))
            if self.start is not None:
                changed = {name: value for name, value in vars(recipe).items() if value != getattr(Recipe(), name)}
                changed |= {"steps": None} if "epochs" in changed and "steps" not in changed else {}
                recipe = dataclasses.replace(transfer_recipe(sets), **changed)
            fitted = fit(model, sets, recipe, seed=seed, progress=self.progress)
        return self._keep(fitted, sets, classes, seed, before)

    def _keep(
        self, fitted: Fitted, sets: PointSets, classes: np.ndarray, seed: int, before: Sequence[dict[str, Any]] = ()
    ) -> Self:
        rows = [{**row, "epoch": row["epoch"] + len(before)} for row in fitted.history]
        self.model_, self.classes_, self.history_ = fitted.model, classes, [*before, *rows]
        self.n_features_in_, self.n_iter_ = sets.inputs, len(self.history_)
        self._next_seed = int(np.random.SeedSequence((seed, 1)).generate_state(1)[0])
        return self

    def _sets(self, X: Any, labels: np.ndarray, classes: np.ndarray) -> PointSets:
        names = {label: str(label) for label in classes.tolist()}
        odd = next((label for label in labels.tolist() if label not in names), None)
        if odd is not None:
            raise InputError(f"y has {quoted(odd)}, and the classes are {_few(classes)}")
        options = {name: getattr(self, name) for name in DATA if name != "up" or self.up is not None}
        named = [names[label] for label in labels.tolist()]
        with value_errors():
            return from_arrays(clouds_of(X), named, list(names.values()), points=self.points, **options)

    def _fields(self, kind: type) -> dict[str, Any]:
        """What was chosen of the fields of a configuration."""
        return {field.name: getattr(self, CALLED.get(field.name, field.name)) for field in dataclasses.fields(kind)}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array = False, True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        """With the weights on the CPU: the file may be read on a machine without this device."""
        state = super().__getstate__()
        if "model_" in state:
            state = state | {"model_": copy.deepcopy(state["model_"]).cpu()}
        return state


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


def _signature() -> inspect.Signature:
    """Every option by name, as scikit-learn asks for: data, recipe, model."""
    kinds = {kind: dataclasses.fields(kind) for kind in (DataOptions, Recipe, ModelOptions)}
    options = {each.name: (each.type, each.default) for each in kinds[DataOptions] if each.name in DATA}
    options = {"points": (int | None, None)} | options
    for each in (*kinds[Recipe], *kinds[ModelOptions]):
        options[CALLED.get(each.name, each.name)] = each.type, each.default
    options |= {"start": (str | None, None), "budget": (float, BUDGET), "progress": (bool, False)}
    options["random_state"] = int | np.random.RandomState | None, None
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = [first, first.replace(name="model", default=DEFAULT, annotation=str)]
    for name, (annotation, default) in options.items():
        parameters.append(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return inspect.Signature(parameters)


PointSetClassifier.__init__.__signature__ = _signature()  # type: ignore[attr-defined]


def _labels(y: Any) -> np.ndarray:
    """Labels [N] of any kind that has classes."""
    with value_errors():
        if y is None:
            raise InputError("y is None, and a classifier needs labels")
        labels = column_or_1d(np.asarray(y), warn=True)
        check_classification_targets(labels)
        return labels


def _few(labels: Iterable[Any]) -> str:
    return quoted(", ".join(map(str, labels)))


def clouds_of(X: Any) -> Any:
    """X with every cloud of a list as an array or a tensor."""
    if isinstance(X, np.ndarray | Tensor) and not (X.ndim == 1 and isinstance(X, np.ndarray)):
        return X
    if not isinstance(X, Sequence | np.ndarray) or isinstance(X, str | bytes):
        raise InputError(f"X must be an array [N, n, d] or a list of clouds [n, d], got {described(X)}")
    return [cloud if isinstance(cloud, np.ndarray | Tensor) else np.asarray(cloud) for cloud in X]


def _sized(X: Any, points: int | None) -> Any:
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
