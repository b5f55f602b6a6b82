"""Classifiers for scikit-learn: cross-validation, grid search, pipelines and calibration."""

import copy
import numbers
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from pointset.arguments import closest_spelling, suggests
from pointset.baselines.models import BASELINES
from pointset.configuration import check
from pointset.data.arrays import from_arrays
from pointset.data.point_sets import PointSets
from pointset.errors import quoted
from pointset.inputs import InputError
from pointset.training.embedding import (
    FILE_POINTS,
    SHAPE_KINDS,
    CloudEstimator,
    clouds_of,
    coordinates_of,
    value_errors,
)
from pointset.training.fine_tuning import transfer_recipe
from pointset.training.fitting import fit
from pointset.training.loop import Fitted
from pointset.training.processes import find_device
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_for
from pointset.zoo.options import ModelOptions
from pointset.zoo.predicting import predict, prepared_batches
from pointset.zoo.pretrained import list_pretrained

NESTED: dict[str, type[Recipe | ModelOptions]] = {"recipe": Recipe, "options": ModelOptions}
"""Parameters whose fields are also parameters, such as `recipe__epochs`."""


class PointSetClassifier(ClassifierMixin, CloudEstimator):
    """A classifier of point sets for scikit-learn: a network or a baseline, selected by name.

    X is an array or a tensor [N, n, d], or a list or an object array of N clouds [n_i, d] of different sizes. The first
    three values of a point are its coordinates, in any unit, because the classifier normalises them. y has N labels of
    any type.

    Args:
        model: a name in `list_models()`, such as "isab16-pma"; a baseline, such as "features+surface-svm", which is
            fitted in seconds and uses coordinates only; or a pretrained model in `list_pretrained()`, which is
            fine-tuned with `transfer_recipe` and the fields of `recipe` that differ from the defaults.
        points: number of points per set. Training draws new points from each cloud in every epoch. Predictions use a
            fixed subset. None uses all points.
        normalize: normalisation of each cloud, as in `DataOptions`.
        device: a torch device name, or "auto", which uses a GPU if there is one.
        random_state: source of the initial weights, of random numbers in training, and of the validation split: a seed,
            a RandomState, or None for numpy's global RandomState.
        recipe: how a network is trained. The fields are also parameters, as in `set_params(recipe__epochs=20)` or in a
            grid search. For early stopping, use `Recipe(validation=0.1, patience=10)`.
        options: how a network is built. The fields are also parameters, such as `options__dim`.

    If other programs use the same cores, set OMP_WAIT_POLICY=PASSIVE before Python starts. Waiting threads then sleep.

    Attributes:
        classes_: the sorted labels. The columns of `predict_proba` have the same order.
        n_features_in_: number of values per point.
        model_: the trained model of the zoo, for `attention_maps` and other functions.
        history_: one row for each epoch, as in `Fitted.history`.
        n_iter_: number of trained epochs.

    Example:
        >>> recipe, options = pointset.Recipe(epochs=2), pointset.ModelOptions(dim=16)
        >>> classifier = pointset.PointSetClassifier("rff-max", random_state=0, recipe=recipe, options=options)
        >>> classifier.fit(X[:16], y[:16]).predict_proba(X[16:]).shape
        (8, 2)
        >>> classifier.set_params(recipe__epochs=3).recipe.epochs, classifier.classes_.tolist()
        (3, ['flat', 'round'])
    """

    @suggests
    def __init__(
        self,
        model: str = "isab16-pma",
        *,
        points: int | None = None,
        normalize: str = "unit-sphere",
        device: str = "auto",
        random_state: int | np.random.RandomState | None = None,
        recipe: Recipe = Recipe(),
        options: ModelOptions = ModelOptions(),
    ) -> None:
        self.model, self.points, self.normalize, self.device = model, points, normalize, device
        self.random_state, self.recipe, self.options = random_state, recipe, options

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name. `deep` adds the fields of recipe and options, such as `recipe__epochs`."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep and isinstance(self.recipe, Recipe):
            parameters |= {f"recipe__{field}": value for field, value in vars(self.recipe).items()}
        if deep and isinstance(self.options, ModelOptions):
            parameters |= {f"options__{field}": value for field, value in self.options.flat().items()}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name, including fields of recipe and options such as `recipe__epochs`. Return self.

        Raises:
            InputError: a parameter does not exist, or a value is not allowed.
        """
        whole = {name: value for name, value in parameters.items() if "__" not in name}
        known = self.get_params()
        for name in parameters:
            if name not in known:
                near = closest_spelling(name, [*known])
                raise InputError(f"Invalid parameter {quoted(name)} for {type(self).__name__}: did you mean {near}?")
        super().set_params(**whole)
        for name in NESTED:
            fields = {key[len(name) + 2 :]: parameters[key] for key in parameters if key.startswith(f"{name}__")}
            if fields:
                with value_errors():
                    setattr(self, name, getattr(self, name).changed(fields))
        return self

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Train from the beginning.

        Args:
            X: N clouds, or files of clouds or meshes. At most 1,024 points of a file are used, or `points` if `points`
                is larger.
            y: N labels.
            groups: N names or numbers of groups, such as views of one object. The validation split never splits a
                group.

        Raises:
            InputError: X or y is not as described for the class, or an option is wrong. An InputError is also a
                ValueError.
        """
        labels = _labels(y)
        classes = np.unique(labels)
        names = [str(label) for label in classes.tolist()]
        with value_errors():
            for name, kind in NESTED.items():
                check(name, getattr(self, name), kind)
            of_sets = [names[place] for place in np.searchsorted(classes, labels)]
            if isinstance(X, Sequence) and not isinstance(X, str):
                most = max(FILE_POINTS, self.points or 0)
                X = [coordinates_of(one, most) if isinstance(one, SHAPE_KINDS) else one for one in X]
            sets = from_arrays(X, of_sets, names, points=self.points, normalize=self.normalize)
            if groups is not None:
                if len(groups) != len(sets):
                    raise InputError(f"groups must be one for each of the {len(sets)} clouds, got {len(groups)}")
                sets = sets.grouped(groups)
            state = self.random_state
            if isinstance(state, numbers.Integral):  # used unchanged, as in `pointset.fit`
                seed = int(state)
            else:
                seed = int(check_random_state(state).randint(2**31 - 1))
            fitted = self._trained(sets, seed)
        self.model_, self.history_, self.classes_ = fitted.model, fitted.history, classes
        self.n_features_in_, self.n_iter_ = sets.inputs, len(fitted.history)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return probabilities float64 [N, classes], in the order of `classes_`.

        Raises:
            NotFittedError: `fit` was not called.
            InputError: X does not consist of clouds or files.
        """
        check_is_fitted(self, "model_")
        with value_errors():
            model: Any = self.model_.to(find_device(self.device))
            return predict(model, prepared_batches(model, clouds_of(X))).probabilities

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable label of each cloud, [N]. Errors are those of `predict_proba`."""
        indices = self.predict_proba(X).argmax(axis=1)
        return self.classes_[indices]

    def _trained(self, sets: PointSets, seed: int) -> Fitted:
        recipe = self.recipe if self.device == "auto" else replace(self.recipe, device=self.device)
        if self.model in BASELINES:
            for name, kind in NESTED.items():
                if getattr(self, name) != kind():
                    raise InputError(f"{name} has no effect on model={self.model!r}: leave it out, or name a network")
            if sets.inputs > 3:
                text = f"{self.model} reads 3 of the {sets.inputs} numbers of a point: choose a network"
                warnings.warn(text, UserWarning, stacklevel=3)
        elif self.model in list_pretrained():
            changed = {name: value for name, value in vars(recipe).items() if value != getattr(Recipe(), name)}
            recipe = transfer_recipe(sets, **changed)
        options = None if self.options == ModelOptions() else self.options
        return fit(create_for(sets, self.model, options, seed=seed), sets, recipe, seed=seed, progress=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state with the weights on the CPU, so that it can be loaded on a machine without this device."""
        state = super().__getstate__()
        if "model_" in state:
            state = state | {"model_": copy.deepcopy(state["model_"]).cpu()}
        return state


def _labels(y: Any) -> np.ndarray:
    """Return the checked labels [N]."""
    with value_errors():
        if y is None:
            raise InputError("PointSetClassifier requires y to be passed, but the target y is None")
        labels = column_or_1d(np.asarray(y), warn=True)
        kinds = {type(label).__name__ for label in labels.tolist()} if labels.dtype == object else ()
        if len(kinds) > 1:
            raise InputError(f"y mixes labels of the types {', '.join(sorted(kinds))}: give labels of one type")
        check_classification_targets(labels)
        return labels
