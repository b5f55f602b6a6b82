"""Lines of numbers: numpy's parser gives the same result as reading word by word, or is not used."""

import warnings
from typing import Any

import numpy as np
import pytest

from pointset.data.readers.number_table import Form, parse_lines, parse_usual
from pointset.errors import PointsetError

TYPES = [("f8", "f8", "f8"), ("f4", "f4", "f4"), ("f4", "u1", "f8"), ("i4", "u2", "i1")]
WHOLE = ["1 2 3", "", "  ", "-0 +7 007", "\t4 5 6 "]
DECIMAL = ["0.1 7 -3.3e38", " ", "1e-3 8 1e308"]


@pytest.mark.parametrize("kept", [(0, 1, 2), (2, 0), ()])
@pytest.mark.parametrize("types", TYPES)
def test_numpy_gives_what_the_words_give(types: tuple[str, ...], kept: tuple[int, ...]) -> None:
    form = Form(types, kept, kept)
    lines = DECIMAL if types == ("f4", "u1", "f8") else WHOLE
    usual, exact = parse_usual(lines, form), parse_lines(lines, 1, form, usual=False)
    assert usual is not None
    np.testing.assert_array_equal(usual, exact)
    assert usual.dtype == exact.dtype == np.float64
    np.testing.assert_array_equal(parse_lines(lines, 1, form, usual=True), exact)


@pytest.mark.parametrize(
    ("types", "line"),
    [
        *[(("f8", "f8"), line) for line in ("1 inf", "1 -inf", "1 nan", "inf inf", "nan nan", "1 1e400", "1 -1e400")],
        *[(("f4", "f4"), line) for line in ("1 -inf", "1 1e39", "-1e39 -1e39", "nan nan", "3.41e38 0")],
        *[(("u1", "f8"), line) for line in ("1 -inf", "256 1", "-1 1", "1.5 1", "1 2 3", "1")],
        *[(("f8", "f8"), line) for line in ("1 2 3", "1", "1 x")],
    ],
)
def test_what_is_not_as_it_should_be_is_told_of_the_line(types: tuple[str, ...], line: str) -> None:
    """With good lines above and below, the wrong line is named and not read as numbers."""
    form = Form(types, (0, 1), (0, 1))
    for lines in (["1 1", "", line, "1 1"], ["", "", line]):
        with pytest.raises(PointsetError, match=r"^line 12: expected "):
            parse_lines(lines, 10, form, usual=True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # as outside of tests
@pytest.mark.parametrize("line", ["1.5 1", "300 1", "-1 1"])
def test_whole_numbers_are_never_cut_to_their_type(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    def before_2_3(rows: list[str], dtype: np.dtype, **_: Any) -> np.ndarray:
        warnings.warn("loadtxt(): Parsing an integer via a float is deprecated.", DeprecationWarning, stacklevel=2)
        return np.array([tuple(map(float, row.split())) for row in rows]).astype("u1").view(dtype)

    monkeypatch.setattr(np, "loadtxt", before_2_3)
    with pytest.raises(PointsetError, match=r"^line 1: expected a whole number from 0 to"):
        parse_lines([line], 1, Form(("u1", "u1"), (0, 1), (0, 1)), usual=True)


def test_numbers_that_are_none_may_stand_where_nothing_is_finite() -> None:
    lines, form = ["1 nan", "2 -inf", "3 4"], Form(("f4", "f8"), (0, 1), (0,))
    for usual in (True, False):
        np.testing.assert_array_equal(
            parse_lines(lines, 1, form, usual=usual), [[1, np.nan], [2, -np.inf], [3, 4]], strict=True
        )
    assert parse_lines(["", " "], 1, form, usual=True).shape == (0, 2)
