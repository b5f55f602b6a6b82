"""Cards of datasets, errors for wrong ones, and the embedded dataset: the same bytes for the same seed."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from pointset import PointsetError
from pointset.data import Card, list_cards, load_card, sample_points
from pointset.data.catalogue import cards
from pointset.data.catalogue.cards import Download, cards_folder
from pointset.data.catalogue.released import SCANS
from pointset.data.shapes10 import KINDS, build_shapes10, is_current, make_shape
from pointset.data.shapes10.build import GENERATOR_VERSION, MARKER

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


def test_the_published_numbers_are_on_the_cards():
    cards = {name: load_card(name) for name in list_cards()}
    assert {name: dict(cards[name].splits) for name in ("modelnet40", "shapes10")} == {
        "modelnet40": {"train": 9843, "test": 2468},
        "shapes10": {"train": 1000, "test": 300},
    }
    assert set(cards["modelnet10"].classes) < set(cards["modelnet40"].classes)
    assert cards["modelnet40-hdf5"].classes == cards["modelnet40-c"].classes == cards["modelnet40"].classes
    assert len(cards["modelnet40-c"].variants) == 15 + len(["original"])
    assert cards["scanobjectnn"].variants == tuple(SCANS)
    assert [card.up for card in cards.values()] == ["z", "z", "y", "y", "y", "z"]


def test_every_key_is_documented_beside_the_cards():
    readme = (cards_folder() / "README.md").read_text(encoding="utf-8")
    keys = [*Card.__struct_fields__, *Download.__struct_fields__, "train", "test"]
    assert [key for key in keys if f"`{key}`" not in readme and f"`[{key}]`" not in readme] == []


def test_the_cards_are_whole():
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
def test_a_wrong_card_is_refused_by_file_and_key(tmp_path, monkeypatch, old, new, words):
    monkeypatch.setattr(cards, "cards_folder", lambda: tmp_path)
    path = tmp_path / "tiny.toml"
    path.write_text(GOOD)
    assert load_card("tiny").urls == ("https://example.org/tiny.zip",)
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(PointsetError, match=words) as caught:
        load_card("tiny")
    assert str(path) in str(caught.value)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes") / "shapes10"
    build_shapes10(folder, train=4, test=2, progress=False)
    return folder


def digests(folder: Path) -> dict[str, str]:
    files = sorted(folder.rglob("*.off"))
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_the_layout_is_modelnets(built):
    assert sorted(path.name for path in built.iterdir() if path.is_dir()) == sorted(KINDS)
    names = [path.name for split in ("train", "test") for path in sorted((built / "chair" / split).iterdir())]
    assert names == [f"chair_{number:04d}.off" for number in range(1, 7)]
    marker = json.loads((built / MARKER).read_text())
    assert marker == {"format": GENERATOR_VERSION, "seed": 0, "shapes_per_kind": {"train": 4, "test": 2}}


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(built, tmp_path):
    build_shapes10(tmp_path / "again", train=4, test=2, progress=False)
    build_shapes10(tmp_path / "other", seed=1, train=4, test=2, progress=False)
    first, again, other = digests(built), digests(tmp_path / "again"), digests(tmp_path / "other")
    assert first == again
    assert not set(first.values()) & set(other.values())


def test_a_shape_does_not_depend_on_how_many_there_are(built, tmp_path):
    build_shapes10(tmp_path / "few", train=1, test=1, progress=False)
    few, many = digests(tmp_path / "few"), digests(built)
    assert few["mug/train/mug_0001.off"] == many["mug/train/mug_0001.off"]
    assert few["mug/test/mug_0002.off"] == many["mug/test/mug_0005.off"]


@pytest.mark.parametrize("marker", [None, '{"format": 0}', "damaged"])
def test_a_folder_of_another_version_or_of_the_user_is_left_alone(marker, built, tmp_path):
    folder = tmp_path / "shapes10"
    (folder / "mug" / "train").mkdir(parents=True)
    (folder / "mug" / "train" / "mine.off").write_text("mine")
    if marker:
        (folder / MARKER).write_text(marker)
    assert not is_current(folder)
    with pytest.raises(PointsetError, match=r"shapes10 is not .* move it away"):
        build_shapes10(folder, progress=False)
    assert (folder / "mug" / "train" / "mine.off").read_text() == "mine"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_shape_can_be_sampled_and_no_two_are_alike(kind):
    sizes = set()
    for number in range(15):
        mesh = make_shape(kind, "train", number)
        points = sample_points(mesh, 64, seed=0)
        assert np.isfinite(points).all()
        sizes.add(tuple(np.ptp(mesh.vertices, axis=0).round(6)))
    assert len(sizes) == 15
