"""Numbers to predict for shapes: from a table beside a folder, or as y of arrays."""

from pathlib import Path

import numpy as np
import pytest
import torch

import pointset
from pointset.data.batches import fixed_batches
from pointset.errors import PointsetError

X = np.random.default_rng(0).normal(size=(6, 9, 3))
NAMES = [f"part_{row}.npy" for row in range(6)]
ROWS = [f"{name},{row}.5,{10 * row}" for row, name in enumerate(NAMES)]


def write(folder: Path, rows: list[str], head: str = "file,mass,area", inside: str = "{name}") -> Path:
    for cloud, name in zip(X, NAMES, strict=True):
        path = folder / inside.format(name=name)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, cloud)
    (folder / "targets.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8-sig")
    return folder


@pytest.mark.parametrize(
    ("inside", "rows"),
    [
        ("{name}", ROWS),
        ("bolt/{name}", [f"bolt/{row}" for row in ROWS]),
        ("bolt/{name}", [f".\\bolt\\{row.replace(',', ';')}" for row in ROWS]),
    ],
)
def test_targets_are_joined_to_shapes_by_name(inside: str, rows: list[str], tmp_path: Path) -> None:
    head = "file;mass;area" if ";" in rows[0] else "file,mass,area"
    folder = write(tmp_path, rows[::-1], head, inside)
    sets = {split: pointset.load_dataset(folder, split, 9, target=("area", "mass")) for split in ("train", "test")}
    assert sum(map(len, sets.values())) == 6
    for one in sets.values():
        assert one.target_names == ("area", "mass")
        for name, (area, mass) in zip(one.names, one.targets.tolist(), strict=True):
            row = int(Path(name).stem.removeprefix("part_"))
            assert (area, mass) == (10 * row, row + 0.5)
        assert "area, mass" in repr(one)
    train = sets["train"]
    assert torch.equal(train.subset([2, 0]).targets, train.targets[[2, 0]])
    assert torch.equal(train[1][1], train.targets[1])
    assert pointset.load_dataset(folder, points=9, target="mass").describe() != train.describe()


def test_folders_of_splits_need_no_classes(tmp_path: Path) -> None:
    write(tmp_path / "train", [])
    write(tmp_path / "test", [])
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["name,mass", *(f"{split}/{row}" for split in ("train", "test") for row in ROWS)]))
    for split in ("train", "test"):
        (tmp_path / split / "targets.csv").unlink()
        assert len(pointset.load_dataset(tmp_path, split, 9, target="mass", targets=str(table))) == 6


@pytest.mark.parametrize(
    ("rows", "head", "words"),
    [
        (ROWS, "file,weight,area", ["one column 'mass'", "weight, area"]),
        (ROWS, "file,mass,mass", ["one column 'mass'", "mass, mass"]),
        (ROWS[:-1], None, ["part_5.npy", "has no row", "targets.csv"]),
        ([*ROWS, "part_9.npy,1,1"], None, ["line 8", "'part_9.npy'", "is not a file"]),
        ([*ROWS, ROWS[2]], None, ["second row", "'part_2.npy'", "line 8"]),
        ([ROWS[0].replace("0.5", "heavy"), *ROWS[1:]], None, ["line 2", "mass", "'part_0.npy'", "'heavy'"]),
        ([ROWS[0].replace("0.5", "nan"), *ROWS[1:]], None, ["line 2", "'nan'"]),
        ([ROWS[0].replace("0.5", ""), *ROWS[1:]], None, ["line 2", "''"]),
        (["x" * 200_000, *ROWS], None, ["targets.csv", "field", "save it as CSV"]),
    ],
)
def test_a_wrong_table_is_refused_in_one_sentence(
    rows: list[str], head: str | None, words: list[str], tmp_path: Path
) -> None:
    folder = write(tmp_path, rows, head or "file,mass,area")
    splits = ("train", "test")
    with pytest.raises(PointsetError) as caught:
        _ = [pointset.load_dataset(folder, split, 9, target="mass") for split in splits]
    assert "\n" not in str(caught.value)
    for word in words:
        assert word in str(caught.value)


def test_shapes_without_a_row_may_be_left_out_but_not_the_table(tmp_path: Path) -> None:
    folder = write(tmp_path, ROWS[:-1])
    sets = [pointset.load_dataset(folder, split, 9, target="mass", on_error="skip") for split in ("train", "test")]
    assert sorted(name for one in sets for name in one.names) == NAMES[:-1]
    (folder / "targets.csv").unlink()
    wrong = {r"targets.csv does not exist.*--targets": {"target": "mass"}, "needs a column": {"targets": "other.csv"}}
    for words, options in wrong.items():
        with pytest.raises(PointsetError, match=words):
            pointset.load_dataset(folder, points=9, **options)


@pytest.mark.parametrize(
    ("y", "target", "names"),
    [
        (np.arange(6) / 2, None, ("y",)),
        (np.ones((6, 2)), None, ("y0", "y1")),
        (torch.arange(6), "count", ("count",)),
        (np.arange(12).reshape(6, 2).tolist(), ["a", "b"], ("a", "b")),
    ],
)
def test_numbers_as_y(y, target, names) -> None:
    sets = pointset.from_arrays(X, y, target=target)
    assert sets.target_names == names
    assert np.array_equal(sets.targets.numpy(), np.asarray(y, float).reshape(6, len(names)))
    assert next(fixed_batches(sets, 4)).labels.shape == (4, len(names))
