"""Classifiers for scikit-learn: cross-validation, grid search, pipelines and calibration."""

import copy
import dataclasses
import inspect
import numbers
import warnings
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from pointset.baselines.models import BASELINES
from pointset.configuration import closest_spelling
from pointset.data.arrays import from_arrays
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets
from pointset.errors import quoted
from pointset.inputs import InputError
from pointset.training.automatic import fit_automatic
from pointset.training.baselines import baseline_of
from pointset.training.checkpoints import Fitted
from pointset.training.devices import find_device
from pointset.training.embedding import CloudEstimator, clouds_of, value_errors
from pointset.training.fine_tuning import BUDGET, transfer_recipe
from pointset.training.loading import load_run
from pointset.training.loop import fit
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for
from pointset.zoo.options import ModelOptions
from pointset.zoo.predicting import predict, prepared_batches
from pointset.zoo.transfer import start_from

LONG = 10
"""After as many epochs, a warning tells of a training that only finds the most frequent class."""
NO_WEIGHTS = (
    "class_weights weights the classes of a network, and a cloud that X holds twice counts twice; give groups, "
    "so that copies stay together"
)
"""What serves in place of sample_weight."""
DATA = ("normalize", "up")
"""Fields of `DataOptions` that are for arrays; `points` has another default."""
OWN_NAMES = {"score": "attention_score"}
"""Names of fields that are those of methods in scikit-learn."""


class PointSetClassifier(ClassifierMixin, CloudEstimator):
    """A classifier of point sets for scikit-learn: any network by its name, by default a support vector machine.

    X is an array or a tensor [N, n, d], or N clouds [n_i, d] of several sizes as a list or an array of objects. The
    first three numbers of a point are its coordinates, in any unit: they are normalised here. y has N labels of any
    kind. Every parameter is an option of its own, so that `GridSearchCV` can go through models and poolings as through
    widths and learning rates.

    Args:
        model: a name of the zoo, such as "isab16-pma", or of a baseline; see `list_models`. The default, a baseline, is
            fitted to some hundred clouds within seconds: a support vector machine on classical features and embeddings
            of trained models. It reads coordinates alone. "auto" takes the best classifier within `budget`, as
            `pointset train` without a model does, and chooses normalisation and recipe itself. For both, fields of
            `Recipe` and `ModelOptions` have no effect and are refused.
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
            dropout, ...), whose `score` is `attention_score` here. Those that a network does not use are ignored. Early
            stopping: `validation=0.1, patience=10`.

    On cores that other programs use too, set OMP_WAIT_POLICY=PASSIVE before Python starts: waiting threads then sleep.

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

    def __init__(self, model: str = "features+surface+embedding-svm", **options: Any) -> None:
        known = inspect.signature(type(self)).parameters
        if odd := next((name for name in options if name not in known), None):
            near = closest_spelling(odd, [*known])
            raise TypeError(f"{type(self).__name__} has no parameter {quoted(odd)}: did you mean {near}?")
        given = inspect.signature(type(self)).bind(model, **options)
        given.apply_defaults()
        for name, value in given.arguments.items():
            setattr(self, name, value)

    def fit(self, X: Any, y: Any, groups: Any = None, **others: Any) -> Self:
        """Train from the beginning.

        Args:
            X: N clouds.
            y: N labels.
            groups: N names or numbers of groups that belong together, such as views of one object: the validation split
                and the folds of "auto" keep them together. None keeps every shape on its own.

        Raises:
            InputError: X or y is not what the class describes, or an option is wrong; also a ValueError.
            TypeError: there is another argument, such as sample_weight. It has no name of its own in the signature,
                because scikit-learn's tools, such as `BaggingClassifier`, pass it where they see it.
        """
        if others:
            text = f"{type(self).__name__}.fit has no argument {quoted(next(iter(others)))}"
            raise TypeError(f"{text}: {NO_WEIGHTS}" if "sample_weight" in others else text)
        labels = _labels(y)
        classes = np.unique(labels)
        names = [str(label) for label in classes.tolist()]
        options = {name: getattr(self, name) for name in DATA if name != "up" or self.up is not None}
        with value_errors():
            sets = from_arrays(
                X,
                [names[place] for place in np.searchsorted(classes, labels)],
                names,
                points=self.points,
                **options,
            )
            if groups is not None:
                if len(groups) != len(sets):
                    raise InputError(f"groups must be one for each of the {len(sets)} clouds, got {len(groups)}")
                sets = sets.grouped(groups)
            is_seed = isinstance(self.random_state, numbers.Integral)  # used as it is, as in `pointset.fit`
            seed = int(self.random_state if is_seed else check_random_state(self.random_state).randint(2**31 - 1))
            fitted = self._trained(sets, seed)
        self.model_, self.history_, self.classes_ = fitted.model, fitted.history, classes
        self.n_features_in_, self.n_iter_ = sets.inputs, len(fitted.history)
        self._warn_of_chance(sets)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities float64 [N, classes], in the order of `classes_`.

        Raises:
            NotFittedError, InputError: before `fit`, or X is not N clouds.
        """
        check_is_fitted(self, "model_")
        with value_errors():
            model: Any = self.model_.to(find_device(self.device))
            return predict(model, prepared_batches(model, clouds_of(X))).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """The likeliest label of each cloud [N], of `classes_`; errors as for `predict_proba`."""
        indices = self.predict_proba(X).argmax(axis=1)
        return self.classes_[indices]

    def _trained(self, sets: PointSets, seed: int) -> Fitted:
        recipe = Recipe.from_dict(self._fields(Recipe))
        if self.start is not None:
            trained, _ = load_run(self.start)
            model = start_from(trained, sets, seed=seed, start=str(self.start))
            changed = {name: value for name, value in vars(recipe).items() if value != getattr(Recipe(), name)}
            recipe = transfer_recipe(sets, **changed)
            return fit(model, sets, recipe, seed=seed, progress=self.progress)
        self._refuse_without_effect()
        if self.model == "auto":
            return fit_automatic(sets, budget=self.budget, seed=seed, progress=self.progress).fitted
        model = create_for(sets, self.model, ModelOptions.from_dict(self._fields(ModelOptions)), seed=seed)
        if baseline_of(model) is not None and sets.inputs > 3:
            text = f"{self.model} reads 3 of the {sets.inputs} numbers of a point: choose a network"
            warnings.warn(text, UserWarning, stacklevel=3)
        return fit(model, sets, recipe, seed=seed, progress=self.progress)

    def _refuse_without_effect(self) -> None:
        """Refuse fields of `Recipe` and `ModelOptions` where the model has none."""
        if self.model not in ("auto", *BASELINES):
            return
        for field in (*dataclasses.fields(Recipe), *dataclasses.fields(ModelOptions)):
            name = OWN_NAMES.get(field.name, field.name)
            if name != "device" and getattr(self, name) != field.default:
                effect = f"{name}={getattr(self, name)!r} has no effect on model={self.model!r}"
                raise InputError(f"{effect}: leave it out, or name a network, such as isab16-pma")

    def _warn_of_chance(self, sets: PointSets) -> None:
        """Warn of a long training that is hardly better than the most frequent class."""
        most = float(np.unique(sets.labels, return_counts=True)[1].max()) / len(sets)
        chance = most + 2 * (most * (1 - most) / len(sets)) ** 0.5  # two standard errors above the most frequent class
        if self.n_iter_ >= LONG and (accuracy := self.history_[-1].get("accuracy", 1.0)) <= chance:
            text = f"after {self.n_iter_} epochs the accuracy on the training sets is {accuracy:.1%}"
            remedy = "try more epochs, or of few clouds least_steps=300, another learning_rate, or another normalize"
            warnings.warn(f"{text}, hardly better than the most frequent class: {remedy}", UserWarning, stacklevel=3)

    def _fields(self, kind: type) -> dict[str, Any]:
        """What was chosen of the fields of a configuration."""
        return {each.name: getattr(self, OWN_NAMES.get(each.name, each.name)) for each in dataclasses.fields(kind)}

    def __getstate__(self) -> dict[str, Any]:
        """With the weights on the CPU: the file may be read on a machine without this device."""
        state = super().__getstate__()
        if "model_" in state:
            state = state | {"model_": copy.deepcopy(state["model_"]).cpu()}
        return state


def _with_options(init: Any) -> None:
    """Let a constructor show every option by name, as scikit-learn asks for: data, recipe, model."""
    of_data = [each for each in dataclasses.fields(DataOptions) if each.name in DATA]
    options: dict[str, tuple[Any, Any]] = {"points": (int | None, None)}
    for each in (*of_data, *dataclasses.fields(Recipe), *dataclasses.fields(ModelOptions)):
        options[OWN_NAMES.get(each.name, each.name)] = each.type, each.default
    options |= {"start": (str | None, None), "budget": (float, BUDGET), "progress": (bool, False)}
    options["random_state"] = int | np.random.RandomState | None, None
    parameters = [inspect.signature(init).parameters[name] for name in ("self", "model")]
    for name, (annotation, usual) in options.items():
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=usual, annotation=annotation))
    init.__signature__ = inspect.Signature(parameters)


_with_options(PointSetClassifier.__init__)


def _labels(y: Any) -> np.ndarray:
    """Labels [N] of any kind that has classes."""
    with value_errors():
        if y is None:
            raise InputError("PointSetClassifier requires y to be passed, but the target y is None")
        labels = column_or_1d(np.asarray(y), warn=True)
        kinds = {type(label).__name__ for label in labels.tolist()} if labels.dtype == object else ()
        if len(kinds) > 1:
            raise InputError(f"y mixes labels of the types {', '.join(sorted(kinds))}: give labels of one type")
        check_classification_targets(labels)
        return labels
