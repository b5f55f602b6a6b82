"""`--up guess`: shapes that stand alike are turned as those of training; without reasons a guess is called unsure.

And what to try after a class that is not to be trusted: the other axis, another pose, or none of the classes.
"""

import numpy as np
import pytest
import torch
from command_line import asked, fail, succeed
from scipy.stats import ttest_rel

import pointset
from pointset.data.axes import TURNS, UP_TO_Z, turned_up
from pointset.data.catalogue.folders import ShapeFile
from pointset.errors import PointsetError
from pointset.evaluation.shape_files import next_step
from pointset.evaluation.upright import best_turn, turn_scores
from pointset.training.loading import load_run
from pointset.zoo.pretrained import ANY_POSE, USUAL

DIRECTIONS = {name: np.eye(3)["xyz".index(name[-1])] * (-1 if name[0] == "-" else 1) for name in UP_TO_Z}


@pytest.fixture(scope="module")
def stools() -> np.ndarray:
    """Upright stools [12, 512, 3]."""
    sets = pointset.load_dataset("shapes10", "test", points=512, progress=False)
    return sets.points[sets.labels == sets.classes.index("stool")][:12].numpy()


def lying(cloud: np.ndarray, turn: str) -> np.ndarray:
    """An upright cloud as a file holds it that `turn` turns upright."""
    return (cloud @ TURNS[turn]).astype(np.float32)


@pytest.mark.parametrize("turn", TURNS)
def test_every_turn_makes_its_direction_point_up(turn):
    up = DIRECTIONS[turn.partition("@")[0]]
    assert np.linalg.det(TURNS[turn]) == pytest.approx(1)
    rows = np.array([[*up, *(2 * up), 7.0]])
    assert turned_up(rows, turn, "z", normals=True).tolist() == [[0, 0, 1, 0, 0, 2, 7]]
    assert turned_up(rows, turn, "y", normals=True).tolist() == [[0, 1, 0, 0, 2, 0, 7]]
    assert len({matrix.tobytes() for matrix in TURNS.values()}) == 24


@pytest.mark.parametrize("turn", ["y@90", "-x@180"])
def test_shapes_that_stand_alike_are_turned_upright(turn, stools):
    model, _ = load_run(USUAL)
    guess = best_turn(turn_scores(model, [lying(cloud, "z@0") for cloud in stools]))
    turned = best_turn(turn_scores(model, [lying(cloud, turn) for cloud in stools]))
    assert (guess.up, guess.is_sure, turned.is_sure) == ("z", True, True)
    np.testing.assert_array_equal(TURNS[turned.turn] @ TURNS[turn].T, TURNS[guess.turn])


def test_few_shapes_or_a_small_margin_are_unsure():
    scores = np.random.default_rng(0).normal(size=(24, 30)) * 0.01
    assert "unsure" in str(best_turn(scores))
    scores[[*TURNS].index("-x@270")] += 1
    assert best_turn(scores).turn == "-x@270"
    assert "up: -x, then turned by 270 degrees (--up -x@270), guessed from 30 shapes" in str(best_turn(scores))
    assert "unsure" not in str(best_turn(scores))
    by_direction = dict(zip(UP_TO_Z, scores.reshape(6, 4, 30).max(axis=1), strict=True))
    found = best_turn(scores)
    assert found.margin == pytest.approx(ttest_rel(by_direction[found.up], by_direction[found.second]).statistic)
    for count in (1, 4):
        assert "unsure" in str(best_turn(scores[:, :count]))


def test_commands_take_the_guess_for_all_files(tmp_path, stools, capsys):
    for folder, turn in (("upright", "z@0"), ("lying", "-x@90")):
        for number, cloud in enumerate(stools):
            path = tmp_path / folder / "stool" / "test" / f"{number}.npy"
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, lying(cloud, turn))
    both = [asked(capsys, "classify", tmp_path / name, "--up", "guess") for name in ("upright", "lying")]
    names = [[row["classes"][0]["class"] for row in answer["predictions"]] for answer in both]
    assert names[0] == names[1]
    said = succeed(capsys, "data", "show", tmp_path / "lying", "--up", "guess")
    assert "up: -x, then turned by 270 degrees (--up -x@270), " in said


def test_what_cannot_be_guessed_is_refused(tmp_path, stools, capsys):
    model, _ = load_run(ANY_POSE)
    with pytest.raises(PointsetError, match="any pose"):
        turn_scores(model, [stools[0]])
    (tmp_path / "a.off").write_text("OFF")
    assert "a.off" in fail(capsys, "classify", tmp_path / "a.off", "--up", "guess")
    assert "--data" in fail(capsys, "evaluate", "--up", "guess")


LAID = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], np.float32)
"""Rows that are multiplied by it have y up."""
TURNED = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0].astype(np.float32)


@pytest.fixture(scope="module")
def table():
    test = pointset.load_dataset("shapes10", split="test", points=1024, normalize="none")
    return test.points[int((test.labels == test.classes.index("table")).nonzero()[0])].numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("turn", "words"),
    [
        (LAID, "try --up y, with which table is 9"),
        (TURNED, f"try --model {ANY_POSE}, with which "),
        (None, "perhaps the shape is"),
    ],
)
def test_what_to_try_is_named(turn, words, table, tmp_path):
    noise = torch.rand(1024, 3, generator=torch.Generator().manual_seed(0)).numpy()
    np.save(tmp_path / "shape.npy", noise if turn is None else table @ turn)
    model, _ = pointset.load_run(USUAL)
    assert next_step(model, [ShapeFile(tmp_path / "shape.npy", "shape.npy")], up="z").startswith(words)


@pytest.mark.slow
def test_most_of_several_shapes_decide(table, tmp_path):
    files = [ShapeFile(tmp_path / f"{number}.npy", f"{number}.npy") for number in range(3)]
    for file in files:
        np.save(file.path, table @ LAID)
    model, _ = pointset.load_run(USUAL)
    assert next_step(model, files, up="z") == "try --up y, with which 3 of 3 are surer"
