"""`pointset classify`: the model's answer for every kind of file, and one line for a mistake."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import asked, fail, succeed
from scipy.spatial.transform import Rotation

import pointset
from pointset.cli import main
from pointset.runs.spreadsheets import read_csv
from pointset.training.recipe import Recipe

TETRAHEDRON = "OFF 4 4 6\n0 0 0\n1 0 0\n0 1 0\n0 0 1\n3 0 2 1\n3 0 1 3\n3 1 2 3\n3 0 3 2\n"
CLOUD = np.random.default_rng(0).normal(size=(20, 3)) * 5 + 3
LARGE = np.random.default_rng(0).normal(size=(700, 3))


@pytest.fixture
def scan(tmp_path: Path) -> Path:
    np.save(tmp_path / "scan.npy", CLOUD)
    return tmp_path / "scan.npy"


def predictions(capsys: pytest.CaptureFixture[str], *arguments: object) -> list[dict[str, Any]]:
    return asked(capsys, "classify", *arguments)["predictions"]


def heard(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[list[dict[str, Any]], str]:
    """The predictions, and what is said beside them."""
    main(["classify", *map(str, arguments), "--json"])
    printed, said = capsys.readouterr()
    return json.loads(printed)["predictions"], said


def expected(run: Path, cloud: np.ndarray) -> dict[str, float]:
    """Classes and probabilities of the model in memory, most probable first."""
    model, _ = pointset.load_run(run)
    pairs = zip(model.classes, model.predict_proba(cloud)[0].tolist(), strict=True)
    return dict(sorted(pairs, key=lambda pair: -pair[1]))


def test_the_answer_is_that_of_the_model_in_memory(isab_run, scan, capsys) -> None:
    (found,) = predictions(capsys, scan, "--model", isab_run)
    answer = expected(isab_run, CLOUD)
    assert [one["class"] for one in found["classes"]] == list(answer)
    np.testing.assert_allclose([one["probability"] for one in found["classes"]], list(answer.values()), atol=1e-5)
    assert found["entropy"] == pytest.approx(-sum(p * np.log(p) for p in answer.values()), abs=1e-4)
    assert (found["name"], found["points"]) == (str(scan), 20)


@pytest.mark.filterwarnings("default")
def test_of_a_large_cloud_a_random_part_is_used_and_one_line_says_so(isab_run, scan, capsys) -> None:
    for name in ("large", "larger"):
        np.save(scan.with_name(f"{name}.npy"), LARGE)
    answers = []
    for _ in range(2):
        found, said = heard(capsys, scan.with_name("large.npy"), scan.with_name("larger.npy"), "--model", isab_run)
        answers.append(found)
        assert said.count("of clouds with more points a random 24 are used") == 1
    assert answers[0] == answers[1]
    assert [answer["points"] for answer in answers[0]] == [24, 24]


def test_a_model_for_any_pose_is_needed_for_any_pose(isab_run, scan, clouds_folder, tmp_path, capsys) -> None:
    assert "--pose any" in fail(capsys, "classify", scan, "--model", isab_run, "--pose", "any")
    train = pointset.load_dataset(clouds_folder, "train", 24, pose="any")
    pointset.fit(pointset.create_model("rff-max", classes=3, dim=16), train, Recipe(epochs=1), run=tmp_path / "run")
    turned = Rotation.random(rng=np.random.default_rng(1)).apply(CLOUD)
    np.save(scan.with_name("turned.npy"), turned)
    both = predictions(capsys, scan, scan.with_name("turned.npy"), "--model", tmp_path / "run", "--pose", "any")
    assert [guess["entropy"] for guess in both] == pytest.approx([both[0]["entropy"]] * 2, abs=0.05)


def test_the_default_output_is_a_table(isab_run, scan, capsys) -> None:
    printed = succeed(capsys, "classify", scan, "--model", isab_run)
    assert printed.startswith(f"{scan}: 20 points")
    np.save(scan.with_name("one.npy"), CLOUD[:1])
    assert ": 1 point" in succeed(capsys, "classify", scan.with_name("one.npy"), "--model", isab_run)
    best, probability = next(iter(expected(isab_run, CLOUD).items()))
    assert printed.splitlines()[3].split() == [best, f"{100 * probability:.1f}"]
    assert "1 shape in 0." in printed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Shapes of a known and an unknown class at two depths of folders, with text files beside them."""
    folder = tmp_path / "shapes"
    rng = np.random.default_rng(1)
    for kind, count in (("ball/train", 3), ("ball/test", 2), ("cat/train", 2)):
        (folder / kind).mkdir(parents=True)
        for number in range(count):
            np.save(folder / kind / f"{number}.npy", rng.normal(size=(15 + number, 3)))
    (folder / "cat" / "train" / "mesh.off").write_text(TETRAHEDRON)
    (folder / "cat" / "train" / "notes.txt").write_text("not a cloud")
    (folder / "list.txt").write_text("ball/train/0.npy")
    return folder


def test_a_folder_becomes_a_table_of_predictions(isab_run, folder, tmp_path, capsys) -> None:
    run, output = isab_run, tmp_path / "predictions.csv"
    printed = succeed(capsys, "classify", folder, "--model", run, "-o", output)
    rows = read_csv(output)
    names = [f"ball/{name}.npy" for name in ("test/0", "test/1", "train/0", "train/1", "train/2")]
    assert [row["name"] for row in rows] == [*names, "cat/train/0.npy", "cat/train/1.npy", "cat/train/mesh.off"]
    assert [row["true_class"] for row in rows] == ["ball"] * 5 + ["cat"] * 3
    assert [row["points"] for row in rows] == ["15", "16", "15", "16", "17", "15", "16", "24"]
    for row in rows[:7]:  # in batches of several sizes as alone
        answer = expected(run, np.load(folder / row["name"]))
        assert row["class_1"] == next(iter(answer))
        assert float(row["probability_1"]) == pytest.approx(answer[row["class_1"]], abs=1e-5)
    assert "class_4" not in rows[0]
    right = sum(row["class_1"] == "ball" for row in rows[:5])
    assert f"accuracy {right / 5:.1%} of the 5 shapes" in printed
    assert "the model does not know the classes of the other 3" in printed


def test_bad_files_are_all_named_or_left_out(isab_run, folder, tmp_path, capsys) -> None:
    run, output = isab_run, tmp_path / "predictions.csv"
    (folder / "cat" / "train" / "0.npy").write_bytes(b"no array")
    (folder / "cat" / "train" / "mesh.off").write_text("OFF\n")
    error = fail(capsys, "classify", folder, "--model", run, "-o", output)
    words = ("2 of 8 files cannot be used", "cat/train/0.npy", "mesh.off", "--on-error skip")
    assert all(word in error for word in words)
    assert not output.exists()
    printed = succeed(capsys, "classify", folder, "--model", run, "-o", output, "--on-error", "skip")
    assert "left out cat/train/mesh.off: " in printed
    assert len(output.read_text().splitlines()) == 7


def test_evaluate_writes_the_same_table(isab_run, tmp_path, capsys) -> None:
    found = asked(capsys, "evaluate", "--model", isab_run, "-o", tmp_path / "test.csv")
    rows = read_csv(tmp_path / "test.csv")
    right = sum(row["class_1"] == row["true_class"] for row in rows) / len(rows)
    assert right == pytest.approx(found["accuracy"])
    assert len({row["name"] for row in rows}) == 60
    assert {row["points"] for row in rows} == {"24"}


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("cloud", "stray", "flags", "words"),
    [
        (CLOUD, [np.nan, 0, 0], (), "1 of 21 points have no position and were left out"),
        (LARGE, [900.0, 0, 0], (), "1 of 701 points left out as isolated"),
        (LARGE, [900.0, 0, 0], ("--keep-outliers",), ""),
    ],
)
def test_points_without_position_or_neighbours_are_left_out(cloud, stray, flags, words, isab_run, tmp_path, capsys):
    np.save(tmp_path / "stray.npy", np.concatenate([cloud, [stray]]))
    ((answer,), said) = heard(capsys, tmp_path / "stray.npy", "--model", isab_run, *flags)
    assert answer["points"] == min(len(cloud), 24)
    assert words in said
    assert said.count("left out") == bool(words)
