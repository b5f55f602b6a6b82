"""Objects of a JSON document, read key by key: whatever is not as expected is named by its place."""

import json
from dataclasses import dataclass
from typing import Any

from pointset.errors import PointsetError, quoted

_LARGEST = 1e300
_UNREADABLE = (ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Item:
    """One object, and where it stands, such as `meshes[0]`; the document itself stands nowhere."""

    values: dict[str, Any]
    place: str = ""

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def whole(self, key: str, default: int | None = None, least: int = 0) -> int:
        """The whole number under a key, at least `least`."""
        value = self.values.get(key, default)
        if type(value) is not int or value < least:
            raise self.error(key, f"a whole number from {least} on")
        return value

    def numbers(self, key: str, default: list[float]) -> list[float]:
        """The finite numbers under a key, as many as there are by default."""
        values = self.values.get(key, default)
        if type(values) is not list or len(values) != len(default):
            raise self.error(key, f"{len(default)} numbers")
        if not all(type(value) in (int, float) and abs(value) < _LARGEST for value in values):
            raise self.error(key, f"{len(default)} finite numbers")
        return [float(value) for value in values]

    def text(self, key: str) -> str:
        """The string under a key."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.error(key, "a text")
        return value

    def array(self, key: str) -> list[Any]:
        """The list under a key, empty if there is none."""
        values = self.values.get(key, [])
        if not isinstance(values, list):
            raise self.error(key, "a list")
        return values

    def item(self, key: str) -> "Item":
        """The object under a key, empty if there is none."""
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.error(key, "an object")
        return Item(values, self._below(key))

    def member(self, key: str, index: int) -> "Item":
        """The object with an index in the list under a key."""
        values = self.array(key)
        if index >= len(values) or not isinstance(values[index], dict):
            raise PointsetError(f"{self._below(key)}[{index}]: expected an object, found one of {len(values)} only")
        return Item(values[index], f"{self._below(key)}[{index}]")

    def indices(self, key: str) -> list[int]:
        """The whole numbers of the list under a key."""
        values = self.array(key)
        if not all(type(value) is int and value >= 0 for value in values):
            raise self.error(key, "a list of whole numbers")
        return values

    def error(self, key: str, expected: str) -> PointsetError:
        """What is wrong with the value under a key."""
        found = quoted(self.values[key]) if key in self.values else "nothing"
        return PointsetError(f"{self._below(key)}: expected {expected}, found {found}")

    def _below(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def parse_json(content: bytes) -> Item:
    """The object that is a JSON document in UTF-8.

    Raises:
        PointsetError: it is not JSON, is too deep, has a key twice in an object, or is not an object.
    """
    try:
        values = json.loads(content.decode("utf-8"), object_pairs_hook=_once, parse_constant=_refused)
    except PointsetError:
        raise
    except _UNREADABLE as error:
        raise PointsetError(f"expected a description in JSON, found something else: {quoted(str(error))}") from error
    if not isinstance(values, dict):
        raise PointsetError("expected a description in JSON that is an object")
    return Item(values)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise PointsetError(f"expected every key once in an object of its JSON, found {quoted(twice)} again")
    return found


def _refused(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")
