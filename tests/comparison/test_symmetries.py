"""Warnings of a comparison about user-defined parts that are not functions of sets."""

import re
import warnings
from dataclasses import replace

import pytest
import toy

import pointset
from pointset.comparison.comparing import warn_of_order
from pointset.comparison.experiment import Entry, Experiment
from pointset.nn import Pooling, registry
from pointset.tasks import MaxRegression, task_recipe
from pointset.zoo.options import ModelOptions


class First(Pooling):
    def forward(self, X, mask=None):
        return X[:, 0]


class Careless(Pooling):
    def forward(self, X, mask=None):
        return X.amax(dim=1)


class Careful(Pooling):
    def forward(self, X, mask=None):
        return (X if mask is None else X * mask[..., None]).sum(dim=1)


class Endless(Careless):
    def forward(self, X, mask=None):
        return super().forward(X) / 0.0


class FailsLater(Careful):
    def forward(self, X, mask=None):
        if X.shape[0] > 2:
            raise RuntimeError("too many sets")
        return super().forward(X, mask)


@pytest.fixture(autouse=True)
def own_parts(monkeypatch):
    monkeypatch.setattr(registry, "REGISTERED", registry.REGISTERED.copy())
    for part in (First, Careless, Careful, Endless, FailsLater):
        pointset.register_pooling(part.__name__.lower())(part)


def experiment(*models: str) -> Experiment:
    return Experiment(task=MaxRegression(), models=tuple(map(Entry, models)), model=ModelOptions(dim=16))


@pytest.mark.parametrize("model", ["rff-first", "rff-max+first", "rff-careless", "rff-endless"])
def test_a_part_that_sees_order_or_padding_is_named(model):
    with pytest.warns(UserWarning, match=re.escape(f"{model} is not a function of sets")):
        warn_of_order(experiment(model))


def test_nothing_is_said_of_functions_of_sets_or_of_the_packages_own_parts(monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_order(experiment("rff-careful", "rff-careful+max"))
        monkeypatch.setattr("pointset.comparison.comparing.check_symmetry", None)
        warn_of_order(experiment("rff-max", "sab-pma"))


def test_a_comparison_warns_and_says_where_in_ones_own_code_a_run_failed(tmp_path):
    short = replace(experiment("rff-careless", "rff-failslater"), seeds=(0,), recipe=task_recipe(steps=2))
    with pytest.warns(UserWarning, match="rff-careless is not a function of sets"):
        found = toy.compare(short, tmp_path / "out")
    assert [run.model for run in found.runs] == ["rff-careless"]
    (failure,) = found.failures
    line = FailsLater.forward.__code__.co_firstlineno + 2
    # A class that is pickled by value has no file from cloudpickle 3.1.3 on.
    assert re.fullmatch(
        rf"RuntimeError: too many sets \((.*test_symmetries\.py|<dynamic-code>), line {line}\)", failure.reason
    )
