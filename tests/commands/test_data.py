"""`pointset data`: cards, what a folder holds and a picture of it, its pools, and what is wrong with them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import asked, fail, fail_late, succeed
from PIL import Image

import pointset
from pointset.cli import main
from pointset.data.shapes10.build import build_shapes10

OBJ = "v 0 0 0\nv 1 0 0\nv 0 {size} 0\nv 0 0 1\nf 1 2 3\nf 1 2 4\nf 1 3 4\nf 2 3 4\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    for number in range(7):
        place = tmp_path / "parts" / ("tall" if number < 5 else "high")
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.obj").write_text(OBJ.format(size=5))
    return tmp_path / "parts"


def test_data_list_and_show(capsys):
    names = [row["name"] for row in asked(capsys, "data", "list")]
    assert {"shapes10", "modelnet10", "modelnet40", "modelnet40-hdf5"} <= set(names)
    card = asked(capsys, "data", "show", "modelnet40")
    assert card["splits"] == {"train": 9843, "test": 2468}
    assert "9,843" in succeed(capsys, "data", "show", "modelnet40")


def test_a_card_is_shown_with_a_picture_of_its_data(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "datasets").mkdir(parents=True)
    build_shapes10(tmp_path / "home" / "datasets" / "shapes10", train=2, test=1, progress=False)
    main(["data", "show", "shapes10", "-o", str(tmp_path / "card.png")])
    said = capsys.readouterr()
    assert "train 1,000, test 300" in said.out
    assert f"saved in {tmp_path / 'card.png'}" in said.err
    with Image.open(tmp_path / "card.png") as picture:
        assert picture.width > 500


def test_a_folder_is_shown(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    said = succeed(capsys, "data", "show", folder, "-o", tmp_path / "sheet.png")
    for words in ("2 classes", "tall is the largest with 5", "high the smallest with 2", "5 train", "2 test", "seed 0"):
        assert words in said, said
    assert "up: y (assumed" in said
    assert not (tmp_path / "home" / "pools").exists()  # nothing was built to look at it
    with Image.open(tmp_path / "sheet.png") as picture:
        assert picture.width > 500


def test_shapes_stand_on_the_picture_as_the_axis_says(folder: Path, tmp_path: Path) -> None:
    """Tall shapes are drawn upright if y is up, and lying if z is up."""
    heights = {}
    for up in ("auto", "z"):
        main(["data", "show", str(folder), "--up", up, "-o", str(tmp_path / f"{up}.png")])
        with Image.open(tmp_path / f"{up}.png") as picture:
            colored = np.ptp(np.asarray(picture.convert("RGB"), np.int64), axis=2) > 40
        dots = np.flatnonzero(colored.any(axis=1))
        heights[up] = np.ptp(dots) / max(np.ptp(np.flatnonzero(colored.any(axis=0))), 1)
    assert heights["auto"] > 1.2 * heights["z"], heights


def test_pools_are_verified(folder: Path, capsys: Any) -> None:
    assert "has no pool in" in fail(capsys, "data", "verify", folder)
    pointset.load_dataset(folder, up="y", points=16, pool_points=16, progress=False)
    succeed(capsys, "data", "show", folder)  # writes its picture beside the pools
    assert succeed(capsys, "data", "verify", folder).count("sound") == 1, "a picture among the pools is not one"
    (folder / "tall" / "0.obj").write_text("v 0 0 0\n")
    printed, said = fail_late(capsys, "data", "verify", folder)
    assert "tall/0.obj has changed since the pool was made" in printed
    assert "rm -r" in said
