"""Cards: the six in the package, and errors for wrong ones."""

from pathlib import Path

import pytest

from pointset.data.catalogue.cards import Card, Download, cards_folder, list_cards, load_card, read_card
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


@pytest.mark.parametrize("name", list_cards())
def test_every_card_is_valid_and_consistent(name: str) -> None:
    card = load_card(name)
    assert list(card.classes) == sorted(card.classes) or name == "scanobjectnn"
    assert card.urls or card.instructions or card.kind == "generated"
    assert all(url.startswith("http") for url in card.urls)


def test_the_published_numbers_are_on_the_cards() -> None:
    splits = {name: dict(load_card(name).splits) for name in list_cards()}
    assert splits == {
        "modelnet10": {"train": 3991, "test": 908},
        "modelnet40": {"train": 9843, "test": 2468},
        "modelnet40-c": {"test": 2468},
        "modelnet40-hdf5": {"train": 9840, "test": 2468},
        "scanobjectnn": {"train": 11416, "test": 2882},
        "shapes10": {"train": 1000, "test": 300},
    }
    assert [len(load_card(name).classes) for name in list_cards()] == [10, 40, 40, 40, 15, 10]
    assert set(load_card("modelnet10").classes) < set(load_card("modelnet40").classes)
    assert load_card("modelnet40-hdf5").classes == load_card("modelnet40").classes
    assert load_card("modelnet40-c").classes == load_card("modelnet40").classes
    assert len(load_card("modelnet40-c").variants) == 15 + len(["original"])
    assert load_card("scanobjectnn").variants == tuple(SCANS)
    assert [load_card(name).up for name in splits] == ["z", "z", "y", "y", "y", "z"]


def test_every_key_is_documented_beside_the_cards() -> None:
    readme = (cards_folder() / "README.md").read_text(encoding="utf-8")
    keys = [*Card.__struct_fields__, *Download.__struct_fields__, "train", "test"]
    assert [key for key in keys if f"`{key}`" not in readme and f"`[{key}]`" not in readme] == []


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(PointsetError, match=r"'modelnet4'.*modelnet40"):
        load_card("modelnet4")
    with pytest.raises(PointsetError, match=r"'xyz'.*modelnet10.*shapes10"):
        load_card("xyz")


def test_a_good_card_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tiny.toml"
    path.write_text(GOOD)
    card = read_card(path)
    assert (card.classes, card.urls, card.download.size) == (("a", "b"), ("https://example.org/tiny.zip",), 10)
    assert card.download.sha256 is None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('title = "Tiny"', 'titel = "Tiny"', "titel"),
        ('title = "Tiny"', "", "title"),
        ('title = "Tiny"', "title = 3", "str.*int.*title"),
        ('title = "Tiny"', 'title = " "', "title"),
        ('name = "tiny"', 'name = "other"', "'other'.*'tiny'"),
        ('kind = "meshes"', 'kind = "mesh"', "mesh.*kind"),
        ('up = "z"', 'up = "x"', "'x'.*up"),
        ('classes = ["a", "b"]', 'classes = ["a"]', "length >= 2.*classes"),
        ('classes = ["a", "b"]', 'classes = ["a", "a"]', "classes.*different"),
        ('classes = ["a", "b"]', "classes = [1, 2]", "str.*int.*classes"),
        ("train = 1", "train = 1.5", "int.*float.*splits"),
        ("test = 1", "", "splits must be test.*got train"),
        ("train = 1", "train = 1\nval = 1", "splits must be.*val"),
        ("size = 10", "size = 0", "download.size"),
        ("size = 10", 'md5 = "abc"', "download.md5"),
        ("size = 10", f'sha256 = "{"A" * 64}"', "download.sha256"),
        ("size = 10", "crc = 1", "crc"),
        ('urls = ["https://example.org/tiny.zip"]', "", "urls is missing"),
        ('urls = ["https://example.org/tiny.zip"]', "urls = []", "urls is missing"),
        ('folder = "Tiny"', "", "folder is missing"),
        ('up = "z"', "up = z", "cannot be used"),
    ],
)
def test_a_wrong_card_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in GOOD
    path = tmp_path / "tiny.toml"
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(PointsetError, match=words) as caught:
        read_card(path)
    assert str(path) in str(caught.value)
