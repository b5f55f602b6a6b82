"""The base class of configurations: types and ranges are checked however an object is created."""

import re
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pytest

from pointset.configuration import Checked, Count, NonNegative, Positive, ScoreScale, Seed, Share
from pointset.errors import PointsetError
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


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


OUT_OF_RANGE = {
    Recipe: {
        "epochs": 0, "validation": 1.0, "schedule": "linear", "learning_rate": 0.0, "clip_norm": 0.0,
        "step_factor": -0.3, "weight_decay": -0.1, "label_smoothing": 1, "train_points": (0, 5),
    },
    ModelOptions: {
        "form": "papre", "norm": "instanse", "score": "cosine", "scale": 0.0, "attention_dropout": 1.0,
        "dropout": 1.0, "layers": 0, "temperature": 0.0,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name", "value"), [(kind, *entry) for kind, values in OUT_OF_RANGE.items() for entry in values.items()]
)
def test_fields_of_the_package_have_their_ranges(kind, name, value):
    with pytest.raises(PointsetError, match=rf"^{name} must be .*got {re.escape(repr(value))}$"):
        kind(**{name: value})
