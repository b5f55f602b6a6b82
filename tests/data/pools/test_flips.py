"""One flipped byte anywhere in a pool is found by `data verify`, and no command computes from what it damaged."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from building import write_mesh
from command_line import fail, fail_late, succeed
from damage import flip

from pointset.data.dataset import load_dataset
from pointset.data.pools.inspection import verify_pool
from pointset.errors import PointsetError

MESHES = ("points.npy", "normals.npy", "manifest.json", "SHA256SUMS")
CLOUDS = (*MESHES, "features.npy", "labels.npy")
SMALL = ("--points", "8", "--dim", "8", "--epochs", "1")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders of meshes and of clouds, and the home of their pools."""
    root = tmp_path_factory.mktemp("flips")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POINTSET_HOME", str(root / "home"))
        for number in range(12):
            split = "test" if number > 7 else "train"
            write_mesh(root / "meshes" / f"class{number % 2}" / split, number)
            write_cloud(root / "clouds" / f"class{number % 2}" / split / f"{number}.ply", 8 + number)
        yield root


def write_cloud(path: Path, size: int) -> None:
    columns = ("x", "y", "z", "nx", "ny", "nz", "intensity")
    words = "".join(f"property float {name}\n" for name in columns)
    head = f"ply\nformat ascii 1.0\nelement vertex {size}\n{words}property int label\nend_header\n"
    rows = np.random.default_rng(size).uniform(1, 2, size=(size, len(columns))).tolist()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + "".join(f"{' '.join(map(str, row))} {place % 2}\n" for place, row in enumerate(rows)))


def load(folder: Path) -> dict[str, np.ndarray]:
    clouds = {"features": ("normals", "intensity"), "labels": "label"}
    options = clouds if folder.name == "clouds" else {"features": "normals", "pool_points": 11}
    pool = load_dataset(folder, points=8, progress=False, **options).source_pool
    return {name: np.array(array) for name, array in {"points": pool.points, **pool.arrays}.items()}


@pytest.mark.parametrize(("kind", "name"), [*(("meshes", n) for n in MESHES), *(("clouds", n) for n in CLOUDS)])
def test_a_flip_anywhere_is_found_and_nothing_is_computed_from_it(kind: str, name: str, root: Path) -> None:
    whole = load(root / kind)
    (file,) = (root / "home" / "pools").glob(f"{kind}-train-*/{name}")
    content = file.read_bytes()
    random = np.random.default_rng(0).integers(len(content), size=18).tolist()
    for place in (0, len(content) // 2, len(content) - 1, *random):
        flip(file, place)
        (problem,) = verify_pool(file.parent, progress=False).problems
        assert name in problem
        if kind == "meshes":
            with pytest.raises(PointsetError, match=rf"{file.parent} cannot be used.*{name}.*--rebuild"):
                load(root / kind)
        file.write_bytes(content)
    flip(file, len(content) // 3)
    if kind == "clouds":  # whose pool repeats what is in the files, and is made again
        loaded = load(root / kind)
        assert all(np.array_equal(loaded[array], whole[array]) for array in whole)
    else:
        flip(file, len(content) // 3)
    assert file.read_bytes() == content
    assert verify_pool(file.parent, progress=False).problems == ()


@pytest.mark.parametrize("name", MESHES)
def test_no_command_prints_a_figure_from_a_damaged_pool(
    name: str, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    meshes, run, out = root / "meshes", root / "run", root / "out"
    build = ("data", "build", meshes, "--normals")
    train = ("train", "rff-max", "--data", meshes, *SMALL, "--run")
    succeed(capsys, *build)
    if not run.exists():
        succeed(capsys, *train, run)
    files = [*(root / "home" / "pools").glob(f"meshes-t*/{name}")]
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, contents, strict=True):
        flip(file, len(content) * 2 // 3)
    listed, _ = fail_late(capsys, "data", "verify", meshes)
    assert listed.count(name) == len(files)
    compare = ("compare", "--models", "rff-max", "--data", meshes, "--out", out, "--workers", "1", *SMALL)
    for command in (build, (*train, root / "another"), ("evaluate", "--model", run), compare):
        assert name in fail(capsys, *command), command
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content)
