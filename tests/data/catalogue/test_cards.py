"""The catalogue: cards and errors for wrong ones, the embedded dataset, and released clouds in small copies."""

import hashlib
import json
from pathlib import Path
from typing import Any

import h5py
import msgspec
import numpy as np
import pytest
from toy import contents

from pointset import PointsetError, load_dataset
from pointset.data import Card, list_cards, load_card, sample_points
from pointset.data.cache import inspection
from pointset.data.catalogue import cards
from pointset.data.catalogue.cards import Download, cards_folder
from pointset.data.catalogue.released import SCANS, is_released, read_released, released_labels
from pointset.data.shapes10 import KINDS, build_shapes10, is_current, make_shape
from pointset.data.shapes10.build import GENERATOR_VERSION, MARKER
from pointset.data.unusable import UnreadableShapesError


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


def test_the_cards_are_whole_and_every_key_is_documented_beside_them():
    for name, card in ((name, load_card(name)) for name in list_cards()):
        assert card.name == name
        assert {"test"} <= {*card.splits} <= {"train", "test"}
        for texts in (card.classes, card.urls, card.variants, card.defects):
            assert len({*texts}) == len(texts)
        assert card.kind == "generated" or (card.homepage and card.folder and (card.urls or card.instructions))
    readme = (cards_folder() / "README.md").read_text(encoding="utf-8")
    keys = [*Card.__struct_fields__, *Download.__struct_fields__, "train", "test"]
    assert [key for key in keys if f"`{key}`" not in readme and f"`[{key}]`" not in readme] == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [('title = "', 'titel = "', "titel"), ("size = 473402300", "size = 0", "download.size"), ('"z"', "z", "cannot")],
)
def test_a_wrong_card_is_refused_by_file_and_key(tmp_path, monkeypatch, old, new, words):
    good, path = (cards_folder() / "modelnet10.toml").read_text(encoding="utf-8"), tmp_path / "modelnet10.toml"
    assert old in good
    monkeypatch.setattr(cards, "cards_folder", lambda: tmp_path)
    path.write_text(good.replace(old, new), encoding="utf-8")
    with pytest.raises(PointsetError, match=words) as caught:
        load_card("modelnet10")
    assert str(path) in str(caught.value)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shapes") / "shapes10"
    build_shapes10(folder, train=4, test=2, progress=False)
    return folder


def test_the_layout_is_modelnets_and_a_shape_depends_on_the_seed_and_not_on_how_many_there_are(built, tmp_path):
    assert sorted(path.name for path in built.iterdir() if path.is_dir()) == sorted(KINDS)
    names = [path.name for split in ("train", "test") for path in sorted((built / "chair" / split).iterdir())]
    assert names == [f"chair_{number:04d}.off" for number in range(1, 7)]
    marker = json.loads((built / MARKER).read_text())
    assert marker == {"format": GENERATOR_VERSION, "seed": 0, "shapes_per_kind": {"train": 4, "test": 2}}
    build_shapes10(tmp_path / "few", train=1, test=1, progress=False)
    few, many = contents(tmp_path / "few"), contents(built)
    for kind in KINDS:
        assert few[f"{kind}/train/{kind}_0001.off"] == many[f"{kind}/train/{kind}_0001.off"]
        assert few[f"{kind}/test/{kind}_0002.off"] == many[f"{kind}/test/{kind}_0005.off"]
    build_shapes10(tmp_path / "other", seed=1, train=1, test=1, progress=False)
    assert not set(few.values()) & set(contents(tmp_path / "other").values())


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


RNG = np.random.default_rng(0)
TEST = "ply_data_test0.h5"
LABEL = np.array([[1], [0]], np.uint8)


def write_file(path: Path, **arrays: Any) -> None:
    with h5py.File(path, "w") as file:
        for key, values in arrays.items():
            file[key] = values


def clouds(count: int, points: int = 7) -> np.ndarray:
    return RNG.standard_normal((count, points, 3)).astype(np.float32)


@pytest.fixture
def release(tmp_path):
    """Two training files of 3 and 2 clouds, one test file of 2; three classes."""
    (tmp_path / "shape_names.txt").write_text("airplane\nbathtub\nbed\n")
    (tmp_path / "train_files.txt").write_text("data/elsewhere/ply_data_train0.h5\nC:\\data\\ply_data_train1.h5\n")
    (tmp_path / "test_files.txt").write_text("data/elsewhere/ply_data_test0.h5\n")
    write_file(tmp_path / "ply_data_train0.h5", data=clouds(3), label=np.array([[0], [2], [1]], np.uint8))
    write_file(tmp_path / "ply_data_train1.h5", data=clouds(2), label=np.array([[2], [2]], np.uint8))
    write_file(tmp_path / TEST, data=clouds(2), label=LABEL)
    return tmp_path


def test_files_are_read_in_the_order_of_their_list_by_base_name(release):
    assert is_released(release)
    assert not is_released(release.parent)
    train = read_released(release, "train")
    with h5py.File(release / "ply_data_train0.h5") as first, h5py.File(release / "ply_data_train1.h5") as second:
        np.testing.assert_array_equal(train.points, np.concatenate([first["data"][:], second["data"][:]]))
    assert train.labels.tolist() == [0, 2, 1, 2, 2]
    assert (train.labels.dtype, train.points.dtype) == (np.int64, np.float32)
    assert train.classes == ["airplane", "bathtub", "bed"]
    assert train.names[2:4] == ["ply_data_train0/2", "ply_data_train1/0"]
    assert len(set(train.names)) == 5


def put(name: str, content: bytes | None) -> Any:
    """Replace a file of the release, or remove it."""
    return lambda folder: (folder / name).unlink() if content is None else (folder / name).write_bytes(content)


def arrays(**given: Any) -> Any:
    return lambda folder: write_file(folder / TEST, **given)


WITH_NAN = clouds(2)
WITH_NAN[1, 3, 2] = np.nan


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (put(TEST, None), f"{TEST}.*missing"),
        (put(TEST, b"no HDF5"), f"{TEST}.*cannot be read"),
        (put("shape_names.txt", None), "shape_names.txt is missing"),
        (put("shape_names.txt", b"bed\nsofa\nbed\n"), "shape_names.txt, 'bed' is given twice"),
        (put("shape_names.txt", "théière\nbed\nsofa\n".encode("latin-1")), "shape_names.txt does not hold text"),
        (put("test_files.txt", None), "test_files.txt is missing"),
        (put("test_files.txt", b"a/ply_data_test0.h5\nb/ply_data_test0.h5\n"), f"'{TEST}' is given twice"),
        (put("train_files.txt", b"ply_data_test0.h5\n"), f"'{TEST}' is given twice"),
        (arrays(label=LABEL), "data"),
        (arrays(data=clouds(2)), "label"),
        (arrays(data=clouds(3), label=LABEL), "'label' must have 3 entries, one for each cloud, got 2"),
        (arrays(data=clouds(2)[..., :2], label=LABEL), r"floats \[N, P, 3\], got"),
        (arrays(data=clouds(2), label=[[0], [-1]]), "labels of 3 classes must be counted from 0 to 2, found -1 to 0"),
        (arrays(data=WITH_NAN, label=LABEL), "row 1 .*not finite"),
        (arrays(data=clouds(2).astype("f8") * 1e300, label=LABEL), "row 0 .*not finite"),
    ],
)
def test_a_damaged_release_is_refused_by_file(release, damage, words):
    damage(release)
    with pytest.raises(PointsetError, match=words) as caught:
        read_released(release, "test")
    assert str(release) in str(caught.value)
    assert len(str(caught.value)) < 800


def test_labels_that_are_counted_from_one_are_refused_in_every_split(release):
    for path in release.glob("*.h5"):
        with h5py.File(path, "r+") as file:
            file["label"][...] += 1
    assert released_labels(release, "test").tolist() == [2, 1]  # might be right
    with pytest.raises(PointsetError, match="labels of 3 classes must be counted from 0 to 2, found 1 to 3"):
        load_dataset(release, "test", points=7)


def test_clouds_that_cannot_be_used_are_named_together_or_left_out(release):
    bad = clouds(3)
    bad[1:, 0, 0] = np.inf
    write_file(release / "ply_data_train0.h5", data=bad, label=np.array([[0], [2], [1]], np.uint8))
    failures = {"ply_data_train0/1", "ply_data_train0/2"}
    with pytest.raises(UnreadableShapesError, match=r"2 of 5 .* cannot be used .*--on-error skip") as caught:
        read_released(release, "train")
    assert (set(caught.value.failures), caught.value.finished) == (failures, 3)
    with pytest.warns(UserWarning, match="2 train clouds are left out"):
        cache = read_released(release, "train", on_error="skip")
    assert cache.names == ["ply_data_train0/0", "ply_data_train1/0", "ply_data_train1/1"]
    assert cache.labels.tolist() == [0, 2, 2]
    assert set(cache.skipped) == failures


def test_clouds_of_different_sizes_are_refused(release):
    write_file(release / "ply_data_train1.h5", data=clouds(2, points=8), label=[[2], [2]])
    with pytest.raises(PointsetError, match=r"different sizes: \[7, 8\]"):
        read_released(release, "train")


def test_the_files_of_a_card_are_those_of_its_digests(release, monkeypatch):
    train, test = ((release / name).read_bytes() for name in ("ply_data_train0.h5", TEST))
    digests = {"ply_data_train0.h5": hashlib.sha256(train).hexdigest(), TEST: hashlib.md5(test).hexdigest()}
    card = msgspec.structs.replace(load_card("modelnet40-hdf5"), files=digests)
    monkeypatch.setattr(inspection, "locate_data", lambda *_, **__: (card, release))
    (verified,) = inspection.verify_dataset("modelnet40-hdf5")
    assert (verified.shapes, verified.what, verified.problems) == (2, "files", ())
    (release / TEST).write_bytes(test[:-1] + b"?")
    (release / "ply_data_train0.h5").unlink()
    (verified,) = inspection.verify_dataset("modelnet40-hdf5")
    absent, changed = verified.problems
    assert "train0.h5 cannot be read" in absent
    assert f"{TEST} is not the file" in changed
    monkeypatch.undo()
    with pytest.raises(PointsetError, match="cannot be verified: the digests of its files are not known"):
        inspection.verify_dataset(release)


@pytest.fixture
def scans(tmp_path):
    """h5_files with every variant except PB_T25; the number of training shapes identifies the variant."""
    folder = tmp_path / "h5_files"
    for number, (variant, (subfolder, ending)) in enumerate(SCANS.items()):
        (folder / subfolder).mkdir(parents=True, exist_ok=True)
        for prefix, count in (("training", 30 + number), ("test", 15)):
            if variant != "PB_T25":
                path = folder / subfolder / f"{prefix}_objectdataset{ending}.h5"
                write_file(path, data=clouds(count), label=np.arange(count) % 15, mask=np.zeros((count, 7)))
    return folder


def test_scanobjectnn_is_read_by_variant(scans):
    assert is_released(scans)
    variants = (None, "PB_T50_RS", "OBJ_ONLY")
    assert [len(read_released(scans, "train", variant).points) for variant in variants] == [30, 30, 35]
    test = read_released(scans, "test", "OBJ_BG")
    assert test.classes[:3] == ["bag", "bin", "box"]
    assert test.labels.tolist() == list(range(15))
    sets = load_dataset(scans.parent, "train", 7, variant="OBJ_ONLY")
    assert (sets.points.shape, sets.describe()["variant"]) == ((35, 7, 3), "OBJ_ONLY")
    assert sets.fingerprint != load_dataset(scans, "train", 7).fingerprint


@pytest.fixture
def corrupted(tmp_path):
    folder = tmp_path / "modelnet40_c"
    folder.mkdir()
    np.save(folder / "label.npy", (np.arange(50) % 40)[:, None])
    for name in ("gaussian_1", "gaussian_2", "density_inc_5", "original"):
        np.save(folder / f"data_{name}.npy", clouds(50).astype(np.float64))
    return folder


def test_modelnet40c_is_read_by_corruption_and_severity(corrupted):
    assert is_released(corrupted)
    first, second = (read_released(corrupted, "test", name) for name in ("gaussian_1", "gaussian_2"))
    assert first.points.dtype == np.float32
    assert first.names == second.names
    assert not np.array_equal(first.points, second.points)
    assert first.labels.tolist() == (np.arange(50) % 40).tolist()


@pytest.mark.parametrize(
    ("layout", "split", "variant", "words"),
    [
        ("scans", "train", "PB_T25", "no variant 'PB_T25' of split 'train': give one of PB_T50_RS, PB_T50_R"),
        ("scans", "train", "PB_T99", "no variant 'PB_T99' .* give one of PB_T50_RS"),
        ("scans", "validation", None, "no split 'validation': it has train and test"),
        ("corrupted", "test", None, "give one of density_inc, gaussian, original, such as density_inc_5"),
        ("corrupted", "test", "fog", "has no variant 'fog' .* give one of density_inc, gaussian"),
        ("corrupted", "train", "gaussian_1", "no split 'train': it has test"),
        ("release", "train", "gaussian_1", "one version only: leave variant='gaussian_1' out"),
    ],
)
def test_splits_and_variants_that_are_missing_are_named(layout, split, variant, words, request):
    with pytest.raises(PointsetError, match=words):
        read_released(request.getfixturevalue(layout), split, variant)


def test_damaged_arrays_are_named(corrupted):
    (corrupted / "data_gaussian_1.npy").write_bytes(b"no array")
    np.save(corrupted / "data_gaussian_2.npy", clouds(49))
    np.save(corrupted / "data_uniform_1.npy", np.array([{"a": 1}]), allow_pickle=True)
    words = {"gaussian_1": "cannot be read", "uniform_1": "cannot be read", "gaussian_2": "49 entries, one for each"}
    for variant, expected in words.items():
        with pytest.raises(PointsetError, match=f"data_{variant}.npy.*{expected}"):
            read_released(corrupted, "test", variant)
