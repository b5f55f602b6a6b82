"""Configurations: wrong values, right ones, and tables of files."""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from inspect import signature
from typing import Literal

import numpy as np
import pytest

from pointset import DataOptions, ModelOptions, PointsetError, Recipe
from pointset.configuration import Checked, Count, NonNegative, Positive, ScoreScale, Seed, Share
from pointset.data.mixing import CutMix


@dataclass(frozen=True, kw_only=True)
class Options(Checked):
    count: Count = 1
    steps: Count | None = None
    seed: Seed = 0
    rate: Share = 0.5
    factor: Positive = 1.0
    decay: NonNegative = 0.0
    form: Literal["reference", "paper"] = "reference"
    norm: Literal["none", "layer"] | None = None
    scale: ScoreScale = "model"
    names: tuple[str, ...] = ()
    kinds: tuple[Literal["a", "b"], ...] | None = None
    fast: bool = False


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("count", 0, "a whole number, at least 1"),
        ("count", 1.5, "a whole number, at least 1"),
        ("seed", -1, r"in \[0, 2\^63\)"),
        ("rate", 1.0, r"in \[0, 1\)"),
        ("rate", float("nan"), r"in \[0, 1\)"),
        ("factor", 0, "above 0"),
        ("factor", float("nan"), "finite"),
        ("decay", -0.1, "at least 0"),
        ("form", "papre", "one of 'reference', 'paper'"),
        ("norm", "lair", "one of 'none', 'layer'"),
        ("scale", "rows", "one of 'model', 'head' or a finite number above 0"),
        ("names", "jitter", "a list, each entry text"),
        ("kinds", ("a", "c"), "a list, each entry one of 'a', 'b'"),
        ("fast", 1, "true or false"),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(name, value, allowed):
    with pytest.raises(PointsetError, match=f"^{name} .*{allowed}") as caught:
        Options(**{name: value})
    assert str(caught.value).endswith(f"got {value!r}")


def test_right_values_are_kept_as_they_are():
    right = {"count": np.int64(3), "rate": np.float32(0.25), "decay": 0, "factor": 2, "seed": 2**63 - 1}
    right |= {"scale": 2.5, "norm": "none", "kinds": ("a", "b")}
    options = Options(**right)
    assert all(getattr(options, name) is value for name, value in right.items())


def test_a_table_of_a_file():
    """TOML has no null, so "none" means no value, except where it is a valid name."""
    found = Options.from_dict({"steps": "none", "norm": "none", "names": ["x", "y"]})
    assert found == Options(steps=None, norm="none", names=("x", "y"))
    assert Options.from_dict(found.as_dict()) == found
    assert found.as_dict()["names"] == ["x", "y"]
    with pytest.raises(PointsetError, match=r"count must be .* got 'none'"):
        Options.from_dict({"count": "none"})
    with pytest.raises(PointsetError, match=r"'cuont' is not an option of Options: did you mean count\? Known: count"):
        Options.from_dict({"cuont": 3})


def configurations(kind: type) -> Iterator[type]:
    """The configurations of the package that can be made without a value."""
    for one in kind.__subclasses__():
        yield from configurations(one)
        if is_dataclass(one) and one.__module__.startswith("pointset."):
            yield from [one] * all(each.default is not each.empty for each in signature(one).parameters.values())


def test_every_option_of_the_package_refuses_a_value_of_another_type_by_its_name():
    kinds = {*configurations(Checked)}
    assert kinds > {Recipe, ModelOptions, DataOptions, CutMix}
    for kind in kinds:
        for field in fields(kind):
            with pytest.raises(PointsetError, match=rf"^{field.name} must be .*got "):
                kind(**{field.name: object()})
