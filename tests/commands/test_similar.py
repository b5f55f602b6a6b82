"""`pointset embed` and `pointset find`: files of rows, similar shapes and near-duplicates."""

from pathlib import Path

import numpy as np
import pytest
from command_line import asked, fail, succeed

NAME = "isab16-pma.shapes10"


@pytest.fixture
def shapes(tmp_path: Path) -> Path:
    """Balls and rods; one rod is in both splits."""
    rng = np.random.default_rng(0)
    for kind, stretch in (("ball", (1, 1, 1)), ("rod", (0.1, 0.1, 1))):
        for split in ("train", "test"):
            (tmp_path / "shapes" / kind / split).mkdir(parents=True)
            for number in range(3):
                sphere = rng.normal(size=(300, 3))
                cloud = sphere / np.linalg.norm(sphere, axis=1, keepdims=True) * stretch * rng.uniform(0.6, 1.5, 3)
                np.save(tmp_path / "shapes" / kind / split / f"{kind}{number}.npy", cloud)
    rod = np.load(tmp_path / "shapes/rod/train/rod0.npy")
    np.save(tmp_path / "shapes/rod/test/rod0.npy", 3 * rng.permutation(rod))
    return tmp_path / "shapes"


def test_from_a_folder_to_rows_to_similar_shapes(shapes: Path, tmp_path: Path, capsys) -> None:
    rows, page = tmp_path / "rows.npz", tmp_path / "found.html"
    assert "12 shapes" in succeed(capsys, "embed", shapes, "-o", rows, "--model", NAME)
    shape = shapes / "rod/train/rod0.npy"
    found = asked(capsys, "find", shape, rows, "-k", 5, "-o", page)["similar"]
    assert found[0]["shape"] == "rod/test/rod0.npy"
    assert {row["class"] for row in found} == {"rod"}
    assert found == asked(capsys, "find", shape, shapes, "-k", 5, "--model", NAME)["similar"]
    assert page.read_text().count("<img") == 6
    assert "rows.csv is a table" in fail(capsys, "find", shape, rows.with_suffix(".csv"))
    words = succeed(capsys, "find", shape, rows, "-k", 5).split()
    assert {f"{row['distance']:.3g}" for row in found} <= {*words}, "rows may be small numbers"
