"""Runs of every kind, each trained once, and what they were trained on."""

from pathlib import Path

import pytest
from toy import train_run, write_boxes, write_labelled

import pointset
from pointset import cli


@pytest.fixture(scope="session")
def isab_run(clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier with attention maps."""
    train_run(run := tmp_path_factory.mktemp("isab") / "isab", clouds_folder, "isab4-pma", 24, dim=16, heads=2)
    return run


@pytest.fixture(scope="session")
def plain_run(clouds_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier without attention maps."""
    train_run(run := tmp_path_factory.mktemp("plain") / "plain", clouds_folder, "rff-max", 24, dim=16, layers=2)
    return run


@pytest.fixture(scope="session")
def rooms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clouds with a column of labels, 2 below and 6 above."""
    return write_labelled(tmp_path_factory.mktemp("rooms"), sizes=(40, 60))


@pytest.fixture(scope="session")
def points_run(rooms: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that labels the points of rooms."""
    sets = pointset.load_dataset(rooms, "train", 24, labels="label", progress=False)
    model = pointset.create_segmenter("isab16-pma", 2, dim=16, heads=2)
    recipe = pointset.Recipe(epochs=25, batch_size=2, learning_rate=1e-2)
    run = tmp_path_factory.mktemp("points") / "points"
    pointset.fit(model, sets, recipe, run=run, progress=False)
    return run


@pytest.fixture(scope="session")
def solids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty clouds of boxes in one folder, with their volumes and heights."""
    return write_boxes(tmp_path_factory.mktemp("solids"), 40)


@pytest.fixture(scope="session")
def numbers_run(solids: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regressor of volumes and heights."""
    run = tmp_path_factory.mktemp("numbers") / "numbers"
    options = f"--target volume height --points 32 --run {run}"
    cli.main(["train", "features+surface-ridge", "--data", str(solids), *options.split()])
    return run
