"""`pointset data`: cards, what a folder holds, its caches; and no control character of a name reaches the terminal."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import asked, fail, fail_late, succeed
from PIL import Image

import pointset
from pointset.cli import main
from pointset.commands.terminal import as_table
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


def test_cards_are_listed_and_shown_with_a_picture_of_their_data(tmp_path, monkeypatch, capsys):
    names = [row["name"] for row in asked(capsys, "data", "list")]
    assert {"shapes10", "modelnet10", "modelnet40", "modelnet40-hdf5"} <= set(names)
    assert asked(capsys, "data", "show", "modelnet40")["splits"] == {"train": 9843, "test": 2468}
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
    assert not (tmp_path / "home" / "cache").exists()  # nothing was built to look at it
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


def test_caches_are_verified(folder: Path, capsys: Any) -> None:
    assert "has no point cache in" in fail(capsys, "data", "verify", folder)
    pointset.load_dataset(folder, up="y", points=16, cache_points=16, progress=False)
    succeed(capsys, "data", "show", folder)  # writes its picture beside the caches
    assert succeed(capsys, "data", "verify", folder).count("sound") == 1, "a picture among the caches is not one"
    (folder / "tall" / "0.obj").write_text("v 0 0 0\n")
    printed, said = fail_late(capsys, "data", "verify", folder)
    assert "tall/0.obj has changed since the cache was built" in printed
    assert "rm -r" in said


NASTY = "\x1b[31mred\n\r\x9b2J\u202e|`<b>"
SHOWN = r"\x1b[31mred\n\r\x9b2J\u202e|`<b>"


@pytest.fixture
def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Meshes of two classes; the names of one class and of a damaged file contain control characters."""
    monkeypatch.setenv("POINTSET_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for label, kind in enumerate(("cube", NASTY)):
        for split in ("train", "test"):
            folder = tmp_path / f"parts{NASTY[:4]}" / kind / split
            folder.mkdir(parents=True)
            for number in range(3):
                mesh = f"OFF\n3 1 0\n0 0 0\n{label + 1} 0 {number}\n0 1 0\n3 0 1 2\n"
                (folder / f"{number}.off").write_text(mesh)
    return folder.parent.parent


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int | None = None) -> str:
    try:
        left = main(arguments)
    except SystemExit as error:
        left = error.code
    assert left == code
    captured = capsys.readouterr()
    text = captured.out + captured.err
    assert text.replace("\n", "").isprintable()
    return text


@pytest.mark.slow
def test_no_command_prints_what_a_terminal_obeys(parts: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = parts / NASTY / "train" / f"{NASTY}.off"
    damaged.write_text(f"OFF {NASTY[:9]}\n3 1 0\n")
    sets = ("--data", str(parts), "--points", "8", "--cache-points", "16", "--epochs", "1", "--dim", "8")
    assert SHOWN[:10] in printed(capsys, "train", "rff-pma", "--run", "run", *sets, code=2)
    damaged.unlink()
    printed(capsys, "train", "rff-pma", "--run", "run", *sets)
    (parts / NASTY / "train" / "0.off").write_text("OFF\n")
    assert SHOWN in printed(capsys, "data", "verify", str(parts), code=2)
    (parts / NASTY / "train" / "0.off").unlink()
    assert SHOWN in printed(capsys, "evaluate", "--model", "run")
    scan = parts / NASTY / "test" / "1.off"
    assert SHOWN in printed(capsys, "classify", str(scan.rename(scan.with_name(f"{NASTY}.off"))), "--model", "run")
    printed(capsys, "attend", str(scan.with_name(f"{NASTY}.off")), "--model", "run", "-o", f"{NASTY[:4]}.png")
    for mistake in (["evaluate", "--model", NASTY], ["train", f"rff{NASTY}"], ["train", "rff-max", f"--{NASTY}"]):
        printed(capsys, *mistake, code=2)
    Path("nasty.toml").write_text(f'models = ["{"rff-max" + os.sep}\\u001b[31m"]\n', encoding="utf-8")
    printed(capsys, "compare", "nasty.toml", code=2)
    both = ("compare", "--models", "rff-max", "rff-mean", "--seeds", "0", "--workers", "1", "--out", "all")
    assert "rff-mean" in printed(capsys, *both, *sets)


def test_a_table_shows_names_as_they_are_and_keeps_signs_and_decimals() -> None:
    rows = [{"class": NASTY, "%": "50.0"}, {"class": "007", "%": "+1.0"}, {"class": "1e5", "%": "-0.2"}]
    head, _, *lines = as_table(rows).splitlines()
    assert head.split() == ["class", "%"]
    assert [line.split() for line in lines] == [[SHOWN, "50.0"], ["007", "+1.0"], ["1e5", "-0.2"]]
    assert {len(line) for line in lines} == {len(head)}, "numbers end in one column"
    assert "1,234" in as_table([{"name": "a", "shapes": 1234}])
    facts = as_table({"names": [NASTY], "text": NASTY, "counts": {NASTY: 1234}})
    assert facts.replace("\n", "").isprintable()
    assert "1,234" in facts


@pytest.fixture
def gappy(parts: Path) -> Path:
    """Clouds of two classes; one has no test shape, and two files are damaged."""
    folder = parts.parent / "clouds"
    rng = np.random.default_rng(0)
    for kind, split, count in (("a", "train", 6), ("a", "test", 3), ("b", "train", 6), ("b\x1b[31m", "train", 1)):
        (folder / kind / split).mkdir(parents=True)
        for number in range(count):
            np.save(folder / kind / split / f"{number}.npy", rng.normal(size=(9, 3)))
    (folder / "b" / "train" / "4.npy").write_bytes(b"no array")
    (folder / "b" / "train" / "5.npy").write_bytes(b"")
    return folder


@pytest.mark.filterwarnings("default::UserWarning")
def test_warnings_are_one_line_each_and_what_is_left_out_is_saved(gappy, capsys, tmp_path) -> None:
    command = ("train", "rff-max", "--data", str(gappy), "--points", "4", "--epochs", "1", "--dim", "8")
    refused = printed(capsys, *command, code=2)
    assert "2 of 13 files cannot be used" in refused
    assert all(word in refused for word in ("4.npy", "5.npy", "--on-error skip"))
    main((*command, "--on-error", "skip"))
    lines = capsys.readouterr().err.splitlines()
    said = [line for line in lines if line.startswith("pointset: warning: ") and "class frequencies" not in line]
    assert len(said) == 2
    assert "lacks 2 of 13 shapes" in said[0]
    assert said[1].endswith(r"has classes only in train: b, b\x1b[31m")
    description = json.loads((tmp_path / "runs" / "rff-max" / "run.json").read_text())
    assert description["data"]["left_out"] == ["b/train/4.npy", "b/train/5.npy"]
    assert "only in train" in printed(capsys, "evaluate", "--model", str(tmp_path / "runs" / "rff-max"))


@pytest.mark.filterwarnings("default::UserWarning")
def test_a_folder_of_which_one_class_is_readable_is_shown_and_checked(folder, capsys) -> None:
    for number in range(4):
        (folder / "high" / f"{number}.obj").write_text("v 0 0 0\nv 1 0\n")
    for file in ("5.obj", "6.obj"):
        (folder / "high" / file).unlink()
    main(["data", "show", str(folder)])
    warned = capsys.readouterr().err
    assert "files cannot be used: " in warned
    assert warned.count("pointset: warning: ") == 1
    assert "more like it: high/" in warned
    said = succeed(capsys, "data", "check", folder)
    assert "classes without a shape that can be read: high" in said


def test_the_order_of_ordered_classes_is_printed(tmp_path, capsys) -> None:
    for grade in (1, 2, 10):
        for number in range(2):
            path = tmp_path / "grades" / str(grade) / f"{number}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, np.random.default_rng(number).normal(size=(9, 3)))
    sizes = ("--points", "4", "--epochs", "1", "--run", tmp_path / "r")
    command = ("train", "rff-max", "--data", tmp_path / "grades", *sizes)
    assert "classes in order: 1 < 2 < 10" in succeed(capsys, *command, "--ordered", "soft")
