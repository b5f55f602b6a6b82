"""Runs as one file: every kind of run gives the same predictions, and a file from elsewhere can do no harm."""

import hashlib
import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from command_line import fail, succeed
from toy import train_run

import pointset
from pointset import PointsetError, Recipe, pack_run
from pointset.training.checkpoints import RunFolder, describe_run
from pointset.zoo.models import mix

X = np.random.default_rng(0).normal(size=(12, 20, 3)) * ([[[1, 1, 1]], [[1, 1, 0.05]]] * 6)
SHORT = Recipe(epochs=1, batch_size=8)


def network(run: Path) -> None:
    sets = pointset.from_arrays(X, [0, 1] * 6)
    pointset.fit(pointset.create_model("isab4-pma", classes=2, dim=8), sets, SHORT, run=run, progress=False)


def baseline(run: Path) -> None:
    sets = pointset.from_arrays(X, [0, 1] * 6)
    pointset.fit(pointset.create_model("features-svm", classes=2), sets, run=run, progress=False)


def product(run: Path) -> None:
    """As `pointset train --data FOLDER` writes it if several classifiers together are best."""
    sets = pointset.from_arrays(X, [0, 1] * 6)
    model = mix([pointset.create_model(name, classes=2) for name in ("rff-max", "isab4-pma")])
    folder = RunFolder(run)
    folder.describe(describe_run(model, sets, SHORT, 0))
    folder.finish(model.state_dict())


@pytest.mark.parametrize("train", [network, baseline, product])
def test_every_kind_of_run_is_the_same_in_a_file(tmp_path, train):
    train(tmp_path / "run")
    card = pack_run(tmp_path / "run", tmp_path / "a.pointset")
    pack_run(tmp_path / "run", tmp_path / "b.pointset")
    assert (tmp_path / "a.pointset").read_bytes() == (tmp_path / "b.pointset").read_bytes()
    (folder, described), (file, packed) = (pointset.load_run(tmp_path / name) for name in ("run", "a.pointset"))
    np.testing.assert_array_equal(folder.predict(X), file.predict(X))
    assert described == packed
    assert card["model"] == described["model"]["name"]


@pytest.fixture(scope="module")
def packed(clouds_folder, tmp_path_factory):
    """The file of a run on the toy dataset, beside its folder."""
    folder = tmp_path_factory.mktemp("packed")
    train_run(folder / "run", clouds_folder, "rff-max", recipe=SHORT)
    pack_run(folder / "run", folder / "toy.pointset")
    return folder / "toy.pointset"


def test_commands_take_the_file_as_a_model(packed, clouds_folder, tmp_path, capsys):
    output = succeed(capsys, "pack", packed.parent / "run", "-o", tmp_path / "toy.pointset")
    assert hashlib.sha256(packed.read_bytes()).hexdigest() in output
    run, file = (
        json.loads(succeed(capsys, "evaluate", "--data", clouds_folder, "--model", model, "--json"))
        for model in (packed.parent / "run", packed)
    )
    assert run["accuracy"] == file["accuracy"]
    assert str(clouds_folder) not in packed.read_bytes().decode("latin-1")
    assert "--data" in fail(capsys, "evaluate", "--model", packed)
    for run, target, word in ((packed.parent, "a.pointset", "run.json"), (packed.parent / "run", "a.zip", ".pointset")):
        assert word in fail(capsys, "pack", run, "-o", tmp_path / target)
    assert "does not exist" in fail(capsys, "evaluate", "--model", "gone.pointset")


def rewritten(packed: Path, path: Path, compression: int = zipfile.ZIP_STORED, **changes: bytes | None) -> Path:
    """A copy of a packed run, with files that are changed (by their stem), and others by their name."""
    with zipfile.ZipFile(packed) as archive:
        content = {Path(name).stem: (name, archive.read(name)) for name in archive.namelist()}
    content |= {name: (content.get(name, (name,))[0], new) for name, new in changes.items()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, entry in content.values():
            if entry is not None:
                archive.writestr(name, entry)
    return path


def test_a_file_that_is_not_as_it_was_packed_is_refused(packed, tmp_path):
    path = tmp_path / "a.pointset"
    whole = packed.read_bytes()
    bad = {
        "cut": lambda: path.write_bytes(whole[: len(whole) // 2]),
        "empty": lambda: path.write_bytes(b""),
        "flipped": lambda: path.write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:]),
        "compressed": lambda: rewritten(packed, path, zipfile.ZIP_DEFLATED),
        "card.json, run.json": lambda: rewritten(packed, path, model=None),
        "../evil.py": lambda: rewritten(packed, path, **{"../evil.py": b"print()"}),
        "format 2": lambda: rewritten(packed, path, card=b'{"format": 2}'),
        "does not describe a run": lambda: rewritten(packed, path, run=b"{}"),
        "not a packed run": lambda: rewritten(packed, path, model=b"\x80\x04."),  # a pickle
    }
    for words, write in bad.items():
        write()
        with pytest.raises(PointsetError, match=r"a\.pointset") as caught:
            pointset.load_run(path)
        message = str(caught.value)
        assert "\n" not in message
        assert words in message or words in ("cut", "empty", "flipped"), message
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.pointset"]
    assert not (tmp_path.parent / "evil.py").exists()


def test_weights_of_another_model_are_refused(packed, tmp_path):
    network(tmp_path / "run")
    other = (tmp_path / "run" / "model.safetensors").read_bytes()
    with pytest.raises(PointsetError, match="does not fit"):
        pointset.load_run(rewritten(packed, tmp_path / "a.pointset", model=other))
