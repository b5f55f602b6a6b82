"""The embedded dataset: the same bytes for the same seed, no two equal shapes, plausible proportions."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest

from pointset.data.sampling import sample_points
from pointset.data.shapes10 import KINDS, build_shapes10, is_current, make_shape
from pointset.data.shapes10.build import GENERATOR_VERSION, MARKER
from pointset.errors import PointsetError


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
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
