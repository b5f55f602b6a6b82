"""Cards: what is known of a data set, one TOML file each. Adding a data set is adding a card.

The fields are documented in `datasets/README.md` of the checkout, which travels in the wheel as
`pointset/cards`.
"""

import difflib
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pointset.errors import PointsetError

Kind = Literal["generated", "meshes", "hdf5", "npy"]

PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, kw_only=True)
class Download:
    """What is known of a published archive; only what was verified is stated."""

    size: int | None = None
    """Bytes."""
    md5: str | None = None
    """Lower-case hexadecimal."""
    sha256: str | None = None
    """Lower-case hexadecimal."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """One data set, as its file says."""

    name: str
    title: str
    kind: Kind
    summary: str
    licence: str
    citation: str
    classes: tuple[str, ...]
    """In the order of the labels."""
    up: Literal["y", "z"]
    splits: Mapping[str, int]
    """Shapes per split."""
    homepage: str = ""
    urls: tuple[str, ...] = ()
    instructions: str = ""
    """How to get the data, where no program can download it."""
    folder: str = ""
    """The folder that the archive unpacks to."""
    variants: tuple[str, ...] = ()
    """Names of the versions that the data comes in."""
    defects: tuple[str, ...] = ()
    download: Download = Download()


def cards_folder() -> Path:
    """Where the cards are: inside an installed package, or at the top of a checkout.

    Raises:
        PointsetError: neither is there.
    """
    for folder in (PACKAGE / "cards", PACKAGE.parent / "datasets"):
        if folder.is_dir():
            return folder
    raise PointsetError(f"the data set cards are missing beside {PACKAGE}: install pointset again")


def list_cards() -> list[str]:
    """Names of all cards, sorted."""
    return sorted(path.stem for path in cards_folder().glob("*.toml"))


def load_card(name: str) -> Card:
    """Read and check one card.

    Raises:
        PointsetError: no card has that name (the nearest names are given), or its file is not as documented.
    """
    if name not in list_cards():
        raise PointsetError(f"no data set is called {name!r}: did you mean {', '.join(nearest_cards(name))}?")
    return read_card(cards_folder() / f"{name}.toml")


def nearest_cards(name: str) -> list[str]:
    """The cards whose names are most like a name, or all when none is like it."""
    known = list_cards()
    return difflib.get_close_matches(name, known, n=3, cutoff=0.4) or known


def read_card(path: Path) -> Card:
    """Read and check the card in a file.

    Raises:
        PointsetError: a key is unknown, missing or of the wrong type; the message names the file and the key.
    """
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise PointsetError(f"{path} is no readable card: {error}") from error
    _check_table(table, _CARD, path, "")
    if table["name"] != path.stem:
        raise PointsetError(f"{path}: name is {table['name']!r}, but the file's name says {path.stem!r}")
    if table["kind"] != "generated":
        for key in ("homepage", "folder"):
            if not table.get(key):
                raise PointsetError(f'{path}: key {key!r} is missing: every kind but "generated" has it')
        if not table.get("urls") and not table.get("instructions"):
            raise PointsetError(f"{path}: key 'urls' is missing: where nothing can be downloaded, give 'instructions'")
    _check_table(table["splits"], _SPLITS, path, "splits.")
    download = table.pop("download", {})
    _check_table(download, _DOWNLOAD, path, "download.")
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}
    return Card(**values, download=Download(**download))


@dataclass(frozen=True)
class _Rule:
    """What the value of one key must be."""

    expected: str
    holds: Callable[[Any], bool]
    required: bool = True


def _check_table(table: Mapping[str, Any], rules: Mapping[str, _Rule], path: Path, prefix: str) -> None:
    for key, value in table.items():
        if key not in rules:
            raise PointsetError(f"{path}: key '{prefix}{key}' is unknown: known are {', '.join(rules)}")
        if not rules[key].holds(value):
            raise PointsetError(f"{path}: key '{prefix}{key}' must be {rules[key].expected}, got {value!r}")
    for key, rule in rules.items():
        if rule.required and key not in table:
            raise PointsetError(f"{path}: key '{prefix}{key}' is missing: it must be {rule.expected}")


def _text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value)) and len(set(value)) == len(value)


def _positive(value: Any) -> bool:
    return type(value) is int and value > 0


def _digest(length: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{length}}}", value) is not None


def _one_of(*choices: str) -> _Rule:
    return _Rule(" or ".join(map(repr, choices)), lambda value: value in choices)


_TEXT = _Rule("a text that is not empty", _text)
_OPTIONAL_TEXT = _Rule("a text that is not empty", _text, required=False)
_OPTIONAL_TEXTS = _Rule("a list of different texts", _texts, required=False)

_CARD = {
    "name": _TEXT,
    "title": _TEXT,
    "kind": _one_of("generated", "meshes", "hdf5", "npy"),
    "summary": _TEXT,
    "homepage": _OPTIONAL_TEXT,
    "urls": _OPTIONAL_TEXTS,
    "instructions": _OPTIONAL_TEXT,
    "folder": _OPTIONAL_TEXT,
    "variants": _OPTIONAL_TEXTS,
    "licence": _TEXT,
    "citation": _TEXT,
    "classes": _Rule("a list of different texts, at least two", lambda value: _texts(value) and len(value) > 1),
    "up": _one_of("y", "z"),
    "splits": _Rule("a table", lambda value: isinstance(value, dict)),
    "download": _Rule("a table", lambda value: isinstance(value, dict), required=False),
    "defects": _OPTIONAL_TEXTS,
}
_COUNT = _Rule("a number of shapes, at least 1", _positive)
_SPLITS = {"train": _Rule("a number of shapes, at least 1", _positive, required=False), "test": _COUNT}
_DOWNLOAD = {
    "size": _Rule("a number of bytes", _positive, required=False),
    "md5": _Rule("32 hexadecimal digits in lower case", _digest(32), required=False),
    "sha256": _Rule("64 hexadecimal digits in lower case", _digest(64), required=False),
}
