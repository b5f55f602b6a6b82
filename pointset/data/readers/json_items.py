"""Read the objects of a JSON document key by key, with errors that name the place of a wrong value."""

import json
from dataclasses import dataclass
from typing import Any

from pointset.errors import PointsetError, quoted

_LARGEST = 1e300
_UNREADABLE = (ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class Item:
    """An object of a JSON document, and its place, such as `meshes[0]`; the place of the document is ""."""

    values: dict[str, Any]
    place: str = ""

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def whole(self, key: str, default: int | None = None, least: int = 0) -> int:
        """The integer of a key, at least `least`."""
        value = self.values.get(key, default)
        if type(value) is not int or value < least:
            raise self.error(key, f"a whole number of at least {least}")
        return value

    def numbers(self, key: str, default: list[float]) -> list[float]:
        """The finite numbers of a key, as many as in the default."""
        values = self.values.get(key, default)
        if type(values) is not list or len(values) != len(default):
            raise self.error(key, f"{len(default)} numbers")
        if not all(type(value) in (int, float) and abs(value) < _LARGEST for value in values):
            raise self.error(key, f"{len(default)} finite numbers")
        return [float(value) for value in values]

    def text(self, key: str) -> str:
        """The string of a key."""
        value = self.values.get(key)
        if not isinstance(value, str):
            raise self.error(key, "a text")
        return value

    def array(self, key: str) -> list[Any]:
        """The list of a key; empty if the key is missing."""
        values = self.values.get(key, [])
        if not isinstance(values, list):
            raise self.error(key, "a list")
        return values

    def item(self, key: str) -> "Item":
        """The object of a key; empty if the key is missing."""
        values = self.values.get(key, {})
        if not isinstance(values, dict):
            raise self.error(key, "an object")
        return Item(values, self._below(key))

    def member(self, key: str, index: int) -> "Item":
        """The object with this index in the list of a key."""
        values = self.array(key)
        if index >= len(values) or not isinstance(values[index], dict):
            found = f"a list of {len(values)}" if index >= len(values) else quoted(values[index])
            raise PointsetError(f"{self._below(key)}[{index}]: expected an object, found {found}")
        return Item(values[index], f"{self._below(key)}[{index}]")

    def indices(self, key: str) -> list[int]:
        """The list of non-negative integers of a key."""
        values = self.array(key)
        if not all(type(value) is int and value >= 0 for value in values):
            raise self.error(key, "a list of whole numbers")
        return values

    def error(self, key: str, expected: str) -> PointsetError:
        """The error for the value of a key."""
        found = quoted(self.values[key]) if key in self.values else "nothing"
        return PointsetError(f"{self._below(key)}: expected {expected}, found {found}")

    def _below(self, key: str) -> str:
        return f"{self.place}.{key}" if self.place else key


def parse_json(content: bytes) -> Item:
    """Parse a JSON document in UTF-8 that is an object.

    Raises:
        PointsetError: it is not JSON, is nested too deeply, repeats a key in an object, or is not an object.
    """
    try:
        values = json.loads(content.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except PointsetError:
        raise
    except _UNREADABLE as error:
        raise PointsetError(f"expected a description in JSON, found something else: {quoted(str(error))}") from error
    if not isinstance(values, dict):
        raise PointsetError("expected a description in JSON that is an object")
    return Item(values)


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in found if keys.count(key) > 1)
        raise PointsetError(f"expected every key once in an object of its JSON, found {quoted(twice)} again")
    return found


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number of JSON")
