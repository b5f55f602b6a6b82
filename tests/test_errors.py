"""Foreign text in messages is short and on one line; configurations have their types and ranges."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from pointset.configuration import Checked, Count, NonNegative, Positive, ScoreScale, Seed, Share
from pointset.errors import REPEATED, PointsetError, escaped, one_line, place_in_own_code, quoted
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("nothing to say")


LONG = ["x" * 10**6, b"\x1b" * 10**6, 10**9999, -(10**5000), nested(10**5), Silent(), np.zeros((99, 99))]
LONG += [[10**5000] * 9, {str(n): n for n in range(9999)}, "\x1b]0;owned\x07" * 99, {"deep": nested(50)}]


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("most", [40, 80, 10**6])
def test_whatever_a_value_is_its_quote_is_short_and_on_one_line(value: object, most: int) -> None:
    found = quoted(value, most)
    assert 0 < len(found) <= min(most, REPEATED) + 2
    assert found.isprintable()


def test_what_is_short_is_shown_as_python_does_and_a_long_path_stays_readable() -> None:
    assert quoted({"a": [1, "a 'b'"]}) == repr({"a": [1, "a 'b'"]})
    path = Path("/folder" * 99)
    assert quoted(path) == repr(str(path))
    assert escaped(f"{path}/\x1b[2J\ud800\u202e") == rf"{path}/\x1b[2J\ud800\u202e"


def test_the_words_of_a_library_are_cut() -> None:
    assert one_line(ValueError("two\n  lines,\x07 é")) == r"two lines,\x07 é"
    assert one_line("ab " * 999, REPEATED) == ("ab " * 99)[: REPEATED - 3] + "..."


def fail_in_numpy() -> None:
    np.zeros(2).reshape(3)


def test_an_error_is_placed_in_the_innermost_code_of_ones_own():
    with pytest.raises(ValueError, match="reshape") as found:
        fail_in_numpy()
    line = fail_in_numpy.__code__.co_firstlineno + 1
    assert place_in_own_code(found.value) == f" ({__file__}, line {line})"
    assert place_in_own_code(ValueError("never raised")) == ""


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
