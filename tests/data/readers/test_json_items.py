"""Checked access to JSON objects: a wrong value is named by its path, with what was found."""

from collections.abc import Callable
from typing import Any

import pytest

from pointset.data.readers.json_items import Item, parse_json
from pointset.errors import PointsetError, quoted

VALUES = {"o": {"k": 1}, "n": 3, "b": True, "t": "word", "l": [0, 2], "f": [1, 2.5], "s": [{"k": 1}, 5]}


@pytest.mark.parametrize(("place", "before"), [("", ""), ("meshes[0]", "meshes[0].")])
def test_what_is_asked_for_is_given(place: str, before: str) -> None:
    item = Item(VALUES, place)
    assert item.item("o") == Item({"k": 1}, f"{before}o")
    assert item.item("none") == Item({}, f"{before}none")
    assert item.member("s", 0) == Item({"k": 1}, f"{before}s[0]")
    assert (item.whole("n"), item.whole("n", least=3), item.whole("none", 7)) == (3, 3, 7)
    assert (item.text("t"), item.array("l"), item.array("none"), item.indices("l")) == ("word", [0, 2], [], [0, 2])
    assert (item.numbers("f", [0.0, 0.0]), item.numbers("none", [4.0])) == ([1.0, 2.5], [4.0])
    assert "n" in item
    assert "none" not in item


@pytest.mark.parametrize("place", ["", "meshes[0]."])
@pytest.mark.parametrize(
    ("ask", "key", "expected"),
    [
        (lambda item: item.item("n"), "n", "an object"),
        (lambda item: item.whole("t"), "t", "a whole number of at least 0"),
        (lambda item: item.whole("b"), "b", "a whole number of at least 0"),
        (lambda item: item.whole("n", least=4), "n", "a whole number of at least 4"),
        (lambda item: item.whole("none"), "none", "a whole number of at least 0"),
        (lambda item: item.text("n"), "n", "a text"),
        (lambda item: item.array("o"), "o", "a list"),
        (lambda item: item.indices("f"), "f", "a list of whole numbers"),
        (lambda item: item.numbers("f", [0.0]), "f", "1 numbers"),
        (lambda item: item.numbers("s", [0.0, 0.0]), "s", "2 finite numbers"),
    ],
)
def test_what_is_not_as_expected_is_named(ask: Callable[[Item], Any], key: str, expected: str, place: str) -> None:
    with pytest.raises(PointsetError) as caught:
        ask(Item(VALUES, place.rstrip(".")))
    found = quoted(VALUES[key]) if key in VALUES else "nothing"
    assert str(caught.value) == f"{place}{key}: expected {expected}, found {found}"


@pytest.mark.parametrize(("index", "found"), [(1, "5"), (2, "a list of 2")])
def test_a_member_that_is_not_there_is_named(index: int, found: str) -> None:
    with pytest.raises(PointsetError, match=rf"^s\[{index}\]: expected an object, found {found}$"):
        parse_json(b'{"s": [{"k": 1}, 5]}').member("s", index)


@pytest.mark.parametrize("word", ["NaN", "-Infinity"])
def test_what_is_not_a_number_of_json_is_refused(word: str) -> None:
    with pytest.raises(PointsetError, match=f"expected a description in JSON, found .*{word} is not a number of JSON"):
        parse_json(f'{{"a": {word}}}'.encode())
