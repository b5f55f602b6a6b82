"""Cards: the six in the package, and errors for wrong ones."""

from pathlib import Path

import pytest

from pointset.data.catalogue import cards
from pointset.data.catalogue.cards import Card, Download, cards_folder, list_cards, load_card
from pointset.data.catalogue.released import SCANS
from pointset.errors import PointsetError

GOOD = """
name = "tiny"
title = "Tiny"
kind = "meshes"
summary = "Two shapes"
homepage = "https://example.org"
urls = ["https://example.org/tiny.zip"]
folder = "Tiny"
licence = "CC0"
citation = "Nobody"
classes = ["a", "b"]
up = "z"
[splits]
train = 1
test = 1
[download]
size = 10
"""


def test_the_published_numbers_are_on_the_cards() -> None:
    cards = {name: load_card(name) for name in list_cards()}
    splits = {name: dict(card.splits) for name, card in cards.items()}
    assert splits == {
        "modelnet10": {"train": 3991, "test": 908},
        "modelnet40": {"train": 9843, "test": 2468},
        "modelnet40-c": {"test": 2468},
        "modelnet40-hdf5": {"train": 9840, "test": 2468},
        "scanobjectnn": {"train": 11416, "test": 2882},
        "shapes10": {"train": 1000, "test": 300},
    }
    assert [len(card.classes) for card in cards.values()] == [10, 40, 40, 40, 15, 10]
    assert set(cards["modelnet10"].classes) < set(cards["modelnet40"].classes)
    assert cards["modelnet40-hdf5"].classes == cards["modelnet40-c"].classes == cards["modelnet40"].classes
    assert len(cards["modelnet40-c"].variants) == 15 + len(["original"])
    assert cards["scanobjectnn"].variants == tuple(SCANS)
    assert [card.up for card in cards.values()] == ["z", "z", "y", "y", "y", "z"]


def test_every_key_is_documented_beside_the_cards() -> None:
    readme = (cards_folder() / "README.md").read_text(encoding="utf-8")
    keys = [*Card.__struct_fields__, *Download.__struct_fields__, "train", "test"]
    assert [key for key in keys if f"`{key}`" not in readme and f"`[{key}]`" not in readme] == []


def test_the_cards_are_whole() -> None:
    for name, card in ((name, load_card(name)) for name in list_cards()):
        assert card.name == name
        assert {"test"} <= {*card.splits} <= {"train", "test"}
        for texts in (card.classes, card.urls, card.variants, card.defects):
            assert len({*texts}) == len(texts)
        assert card.kind == "generated" or (card.homepage and card.folder and (card.urls or card.instructions))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [('title = "Tiny"', 'titel = "Tiny"', "titel"), ("size = 10", "size = 0", "download.size"), ('"z"', "z", "cannot")],
)
def test_a_wrong_card_is_refused_by_file_and_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, words: str
) -> None:
    monkeypatch.setattr(cards, "cards_folder", lambda: tmp_path)
    path = tmp_path / "tiny.toml"
    path.write_text(GOOD)
    assert load_card("tiny").urls == ("https://example.org/tiny.zip",)
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(PointsetError, match=words) as caught:
        load_card("tiny")
    assert str(path) in str(caught.value)
