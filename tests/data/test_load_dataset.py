"""Sets by the name of a card or from a folder: what is refused, their upward axis, and repeated shapes."""

import shutil
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
import trimesh
from command_line import succeed
from toy import random_cache, save, write_clouds_release, write_shapes

import pointset
from pointset import PointsetError, load_dataset
from pointset.data import Mesh, downsample, load_card, read_mesh, reload, sample_points
from pointset.data.axes import rotate_up, usual_up
from pointset.data.catalogue import locate
from pointset.data.leakage import repeated_files
from pointset.data.preparation import prepare
from pointset.data.readers.off import write_off
from pointset.data.reload import load_like
from pointset.data.shapes10 import build_shapes10


def test_a_folder_of_the_hdf5_layout(tmp_path):
    folder = write_clouds_release(tmp_path / "release")
    data = load_dataset(folder, "test", points=7)
    assert (len(data), data.classes, data.up, data.name) == (6, ["class0", "class1", "class2"], "z", "release")
    assert data.points.shape == (6, 7, 3)
    assert load_dataset(str(folder), points=7, up="y").up == "y"
    np.testing.assert_array_equal(data.point_cache.points, random_cache(6, 3, seed=6).points)


def test_a_class_that_is_in_one_split_alone_is_named(home, few):
    (few / "class1" / "train").rename(few / "class1" / "test")
    with pytest.warns(UserWarning, match=r"few has classes only in train: class0, only in test: class1$"):
        load_dataset(few, points=5, cache_points=5)


def test_more_points_than_a_cache_are_refused_before_it_is_made(home, few):
    with pytest.raises(
        PointsetError, match=r"points=6 is more than the 5 .*few.*--points 5.*--cache-points of `train`"
    ):
        load_dataset(few, points=6, cache_points=5)
    assert not home.exists()


ZIP = r"{home}/datasets.*https?://\S+\.zip"


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [
        ("release", {"points": 99}, "points=99 is more than the 23 that release holds"),
        ("release", {"split": "validation"}, "validation_files.txt is missing"),
        ("release", {"up": "w"}, "up must be .*'x', 'y', 'z'.*'w'"),
        ("release", {"sampler": "poisson"}, "sampled points already.*'poisson'"),
        ("modelnet41", {}, "'modelnet41' is neither a folder nor.*modelnet40"),
        (Path("modelnet40"), {}, "'modelnet40' is neither"),  # a path is never a card
        *((name, {}, ZIP) for name in ("modelnet10", "modelnet40", "modelnet40-hdf5")),
    ],
)
def test_what_cannot_be_loaded_is_refused(data, options, words, tmp_path, home):
    release = write_clouds_release(tmp_path / "release")
    with pytest.raises(PointsetError, match=words.replace("{home}", str(home))):
        load_dataset(release if data == "release" else data, **{"points": 7, **options})


@pytest.mark.parametrize("name", ["modelnet40_ply_hdf5_2048", "modelnet40-hdf5"])
def test_a_cards_data_is_found_and_compared_with_the_card(home, name):
    folder = write_clouds_release(home / "datasets" / name, classes=40)
    with pytest.raises(PointsetError, match=r"other classes than modelnet40-hdf5 \(.*airplane.*unpack the data again"):
        load_dataset("modelnet40-hdf5", points=7)
    (folder / "shape_names.txt").write_text("\n".join(load_card("modelnet40-hdf5").classes))
    with pytest.raises(PointsetError, match="has 12 train shapes where modelnet40-hdf5 has 9840"):
        load_dataset("modelnet40-hdf5", points=7)


def test_the_embedded_data_set_is_built_at_first_use_and_turned_to_the_axis_of_a_model(home, monkeypatch):
    card = msgspec.structs.replace(load_card("shapes10"), splits={"train": 10, "test": 20}, up="y")
    for module in (locate, reload):
        monkeypatch.setattr(module, "load_card", lambda name: card)
    monkeypatch.setattr(locate, "build_shapes10", partial(build_shapes10, train=1, test=2))
    for split, count in card.splits.items():
        data = load_dataset("shapes10", split, points=7, cache_points=9)
        assert (len(data), data.classes, data.up, data.name) == (count, list(card.classes), "y", "shapes10")
    with pytest.warns(UserWarning, match="shapes10 has Y up, and the model's shapes have Z up"):
        turned = load_like(changed(data, "/another", up="z"), "test", "shapes10")
    np.testing.assert_allclose(turned.points.numpy(), rotate_up(data.points.numpy(), "y", "z"), atol=1e-6)
    (home / "datasets" / "shapes10" / "mug" / "train" / "mug_0001.off").unlink()
    with pytest.raises(PointsetError, match=r"has 9 train shapes where shapes10 has 10: delete that folder"):
        load_dataset("shapes10", points=7, cache_points=9)


@pytest.mark.parametrize("sampler", ["uniform", "fps"])
def test_a_file_is_sampled_as_the_sets_were(home, few, sampler):
    """A random part of points that are spread evenly is not spread evenly, and a model knows such parts alone."""
    model = load_dataset(few, points=8, cache_points=40, sampler=sampler).preparation
    path = few / "class0" / "train" / "shape0.off"
    cache = sample_points(read_mesh(path), 40, seed=3, sampler=sampler)
    expected = cache[:8] if sampler == "uniform" else cache[downsample(cache, 8, seed=3)]
    np.testing.assert_array_equal(prepare(path, model, points=8, seed=3).raw, expected)
    assert prepare(path, model, points=50).points.shape == (50, 3)


def test_test_shapes_that_are_training_shapes_are_counted(tmp_path, capsys):
    folder = write_shapes(tmp_path / "data", shapes=4, points=32)
    assert repeated_files(load(folder)) == ()
    shutil.copy(folder / "train" / "ball" / "ball_0.npy", folder / "test" / "flat" / "flat_1.npy")
    said = "1 of 8 test shapes are also training shapes"
    assert repeated_files(load(folder))[0].startswith(said)
    command = ["train", "features-svm", "--data", folder, "--points", 32, "--run", tmp_path / "run"]
    assert said in succeed(capsys, *command)
    assert said in succeed(capsys, "evaluate", "--model", tmp_path / "run")
    (tmp_path / "without.csv").write_text("file\ntest/flat/flat_1.npy\n")
    assert repeated_files(load(folder, without=str(tmp_path / "without.csv"))) == ()


CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 3.0]])
FACES = [(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)]


def write_obj(path: Path, corners: np.ndarray) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [*("v {} {} {}".format(*corner) for corner in corners), *("f {} {} {}".format(*face) for face in FACES)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def objs(tmp_path, home):
    for number in range(4):
        write_obj(tmp_path / "objs" / f"class{number % 2}" / "train" / f"{number}.obj", CORNERS * (number + 1))
    return tmp_path / "objs"


def load(data: Path, **options: Any) -> pointset.PointSets:
    return pointset.load_dataset(data, points=8, cache_points=20, progress=False, **options)


def changed(sets: pointset.PointSets, source: str | None = None, **preparation: Any) -> dict[str, Any]:
    """Return the description of sets as of another training."""
    description = sets.describe()
    return description | {
        "source": source or description["source"],
        "preparation": description["preparation"] | preparation,
    }


def with_objs_turned(sets: pointset.PointSets, normals: bool = False) -> list[np.ndarray]:
    pairs = zip(sets.names, sets.points.numpy(), strict=True)
    return [rotate_up(cloud, "y", "z", normals=normals) if name.endswith(".obj") else cloud for name, cloud in pairs]


def test_a_folder_of_obj_files_is_not_taken_for_z_up_in_silence(objs):
    assert [usual_up(names) for names in (["a.obj", "b/C.GLB"], ["a.obj", "a.off"], ["a.ply"])] == ["y", None, None]
    with pytest.warns(UserWarning, match=r"objs.*\.obj.*Y up.*--up") as warned:
        sets = load(objs)
    assert (sets.up, sets.preparation.up, len(warned)) == ("y", "y", 1)
    said = load(objs, up="z")
    assert said.up == "z"
    assert torch.equal(said.points, sets.points)  # caches and points know no axis
    assert said.point_cache.fingerprint([0]) == sets.point_cache.fingerprint([0])
    with pytest.warns(UserWarning, match="Y up"):
        assert load(objs, up="auto").describe() == sets.describe()


def test_obj_files_beside_others_are_turned_as_one_file_would_be(objs, tmp_path):
    write_off(objs / "class0" / "train" / "5.off", Mesh(CORNERS, np.array(FACES) - 1))
    with pytest.warns(
        UserWarning, match=r"objs holds \.obj files, which usually have Y up: with other files, they are rotated.* --up"
    ) as said:
        sets = load(objs)
    assert len(said) == 1
    as_they_are = load(objs, up="z")  # a warning would be an error
    assert torch.equal(load_like(sets.describe(), "train").points, sets.points)
    np.testing.assert_allclose(sets.points.numpy(), with_objs_turned(as_they_are), atol=1e-6)
    for up, expected in ((None, sets.points), ("z", as_they_are.points)):  # of another folder, turned once or not
        with warnings.catch_warnings(action="ignore"):
            copied = load_like(sets.describe(), "train", shutil.copytree(objs, tmp_path / f"copied {up}"), up=up)
        assert torch.equal(copied.points, expected)
    assert (sets.up, as_they_are.up) == ("z", "z")
    assert (sets.preparation.kinds, as_they_are.preparation.kinds) == ((".off",), (".obj", ".off"))


def test_a_file_is_turned_to_the_axis_of_the_model(objs, few):
    model = load(few).preparation  # OFF files: z
    path = write_obj(objs / "upright.obj", rotate_up(CORNERS, "z", "y"))
    upright = prepare(write_obj(objs / "z.obj", CORNERS), model, up="z")
    with pytest.warns(UserWarning, match=r"\.obj files usually have Y up.*Z up.*rotated; --up z") as warned:
        turned = prepare(path, model)
    assert len(warned) == 1
    torch.testing.assert_close(turned.points, upright.points)
    np.testing.assert_allclose(turned.raw, upright.raw, atol=1e-6)
    assert turned.mesh is not None
    np.testing.assert_allclose(turned.mesh.vertices, CORNERS)
    assert torch.equal(prepare(path, model, up="y").points, turned.points), "no warning for what was asked for"
    for wrong in ({"up": "sideways"}, {"points": 0}):
        with pytest.raises(PointsetError, match=r"(up|points) must be"):
            prepare(path, model, **wrong)


@pytest.mark.parametrize("up", ["auto", "z"])
def test_a_file_stands_as_files_of_its_kind_in_training(objs, tmp_path, up):
    with warnings.catch_warnings(action="ignore"):
        model = load(objs, up=up).preparation
    assert (model.up, model.kinds) == ("y" if up == "auto" else up, (".obj",))
    np.save(tmp_path / "a.npy", CORNERS)
    mesh = prepare(objs / "class0" / "train" / "0.obj", model).mesh
    raw = prepare(tmp_path / "a.npy", model).raw
    np.testing.assert_allclose(mesh.vertices, CORNERS)
    other = "z" if up == "auto" else "y"
    turned = prepare(tmp_path / "a.npy", model, up=other).raw
    np.testing.assert_allclose(turned, rotate_up(raw, other, model.up))


def test_another_dataset_is_turned_to_the_axis_of_the_model(objs, few):
    """As each of its files would be: beside others, only files of a kind that usually has another axis."""
    model = changed(load(few), features=["normals"])  # OFF files: z
    write_off(objs / "class0" / "train" / "5.off", Mesh(CORNERS, np.array(FACES) - 1))
    as_they_are = load(objs, up="z", features=["normals"])
    with pytest.warns(UserWarning, match=r"\.obj files usually have Y up.*Z up.*rotated; --up z") as warned:
        sets = load_like(model, "train", objs)
    assert (len(warned), sets.up, sets.names) == (1, "z", as_they_are.names)
    np.testing.assert_allclose(sets.points.numpy(), with_objs_turned(as_they_are, normals=True), atol=1e-6)
    said = load_like(model, "train", objs, up="z")
    assert torch.equal(said.points, as_they_are.points)


def test_another_dataset_is_normalised_wherever_it_stands(few, tmp_path):
    """As its files are for a prediction: a model that was trained on centred shapes knows no others."""
    rng, clouds = np.random.default_rng(0), tmp_path / "clouds"
    for place, folder in ((0.0, "near"), (9.0, "far")):
        for number in range(2):
            cloud = rng.normal(size=(20, 3))
            save(clouds / folder / f"class{number}" / "train" / "0.npy", cloud - cloud.mean(axis=0) + place)
    near = load(clouds / "near", normalize="standardize")
    assert near.preparation.normalize == "center-standardize"
    far = load_like(near.describe(), "train", clouds / "far")
    assert far.points.mean(dim=1).abs().max() < 1e-5
    moved = changed(near, "/another")  # centred shapes are not centred again, of which sets are a part
    assert torch.equal(load_like(moved, "train", clouds / "near").points, near.points)


def test_the_upward_axis_that_dae_files_state_is_that_of_a_dataset_and_of_a_file(tmp_path, home):
    pytest.importorskip("collada")
    folder = tmp_path / "cones"
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for row in range(2):
            cone = trimesh.creation.cone(radius=1, height=5 + row)
            lying = trimesh.Trimesh(rotate_up(cone.vertices, "z", "y"), cone.faces, process=False)
            lying.export(folder / name / f"{name}{row}.dae")  # trimesh states Y_UP
    for up, axis in (("auto", 2), ("y", 1)):
        sets = load_dataset(folder, points=200, up=up, progress=False)
        assert sets.up == "xyz"[axis]
        assert (np.ptp(sets.points.numpy(), axis=1).argmax(axis=1) == axis).all()
        for file_up in (None, "y"):
            raw = prepare(folder / "a/a0.dae", sets.preparation, up=file_up).raw
            assert np.ptp(raw, axis=0).argmax() == axis
