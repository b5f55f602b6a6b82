"""Clouds in memory as point sets, equal to those that `load_dataset` reads from files."""

import pickle
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data.unusable import UnreadableShapesError
from pointset.errors import PointsetError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 7, 3))
Y = ["b", "a", "b", "a", "c", "c"]


@pytest.mark.parametrize(
    "given",
    [
        X,
        X.astype(np.float32),
        torch.tensor(X, requires_grad=True),
        list(X),
        [torch.tensor(one) for one in X],
        X.tolist(),
        np.array([*X, None], dtype=object)[:-1],
        np.asfortranarray(X),
        X.astype(">f8"),
        *(torch.tensor(10 * X).to(kind) for kind in (torch.float16, torch.bfloat16, torch.int32)),
    ],
)
def test_arrays_and_tensors_of_all_types_give_the_same_sets(given: Any) -> None:
    sets = pointset.from_arrays(given, Y, normalize="none")
    assert (sets.classes, sets.labels.tolist(), sets.size) == (["a", "b", "c"], [1, 0, 1, 0, 2, 2], 7)
    clouds = np.array([cloud if isinstance(cloud, list) else cloud.tolist() for cloud in given], np.float32)
    assert sorted(sets[3][0].tolist()) == sorted(clouds[3].tolist())
    assert sets.fingerprint == pointset.from_arrays(clouds, Y).fingerprint


@pytest.mark.parametrize(
    ("y", "classes", "labels", "known"),
    [
        ([10, 9, 10], None, [1, 0, 1], ["9", "10"]),
        (np.array([1, 0, 1], np.uint8), ["cup", "jug", "pot"], [1, 0, 1], ["cup", "jug", "pot"]),
        (["jug", "cup", "jug"], ["pot", "jug", "cup"], [1, 2, 1], ["pot", "jug", "cup"]),
        ([10, 9, 10], ["9", "10"], [1, 0, 1], ["9", "10"]),
        ([10, 9, 10], [10, 9], [0, 1, 0], ["10", "9"]),
        (torch.tensor([2, 0, 2]), None, [1, 0, 1], ["0", "2"]),
        ([0, 1, 0], ["-1", "0", "1"], [1, 2, 1], ["-1", "0", "1"]),
        ([-1, 1, -1], [-1, 1], [0, 1, 0], ["-1", "1"]),
        (np.array([1, -1, 7], np.int8), ["+1", "07", "-1"], [0, 2, 1], ["+1", "07", "-1"]),
        ([-3, 5, -3], None, [0, 1, 0], ["-3", "5"]),
    ],
)
def test_labels_are_places_or_names(y: Any, classes: Any, labels: list[int], known: list[str]) -> None:
    sets = pointset.from_arrays(X[:3], y, classes)
    assert (sets.labels.tolist(), sets.classes) == (labels, known)
    if classes is None:  # those of training name those of a test
        assert pointset.from_arrays(X[:1], y[-1:], sets.classes, split="test").labels.tolist() == labels[-1:]


NAN = X.copy()
NAN[4, 2, 1] = np.nan


@pytest.mark.parametrize(
    ("given", "y", "options", "said"),
    [
        (X, Y[:5], {}, ["6 clouds", "got 5"]),
        (NAN, Y, {}, ["cloud 4", "not finite"]),
        (X[..., :2], Y, {}, ["cloud 0", "[n, d]", "[7, 2]"]),
        ([X[0], X[1, :0]], [0, 1], {}, ["cloud 1", "no point"]),
        ([X[0], X[1] * 0 + 2], [0, 1], {}, ["cloud 1", "no extent"]),
        ([X[0], X[1] * 1e39], [0, 1], {}, ["cloud 1", "float32"]),
        ([X[0], np.hstack([X[1]] * 2)], [0, 1], {}, ["0 columns in '000000' and 3 in '000001'", "give all"]),
        ([np.hstack([X[1]] * 2), X[0]], [0, 1], {}, ["3 columns in '000000' and 0 in '000001'", "give all"]),
        ([np.hstack([X[1]] * 2), np.c_[X[0], X[0, :, :2]]], [0, 1], {}, ["3 columns in '000000' and 2 in '000001'"]),
        (X[:2], [0, 3], {"classes": ["a", "b"]}, ["3", "cloud 1", "2 classes"]),
        (X[:2], ["a", "z"], {"classes": ["a", "b"]}, ["'z'", "cloud 1", "'a, b'"]),
        (X[:2], [0, -1], {"classes": ["a", "b"]}, ["-1", "cloud 1"]),
        (X[:2], [0.5, 1.0], {"classes": ["a", "b"]}, ["whole numbers or", "names"]),
        (X[:2], [None, "a"], {}, ["y"]),
        (X[:2], [0, 1], {"classes": ["a", "a"]}, ["'a' ", "twice"]),
        (X[:2], [0, 1], {"classes": ["1", "0", "01"]}, ["1 ", "twice"]),
        (X[:2], [0, 1], {"names": ["a", "a"]}, ["names", "'a' ", "twice"]),
        (X[0], [0], {}, ["X[None]"]),
        ([], [], {}, ["X is empty"]),
        ("chairs", [0], {}, ["X must be", "str"]),
        (X[:2], [0, 1], {"points": 8}, ["points=8", "7"]),
        (X[:2], [0, 1], {"normalize": "unit"}, ["normalize", "'unit'"]),
        (X.transpose(0, 2, 1), Y, {}, ["[3, 7]", "look transposed", "cloud.T"]),
        (np.ma.masked_greater(X, X.max() - 1e-6), Y, {}, ["cloud", "masked entries", "leave those points out"]),
        (X, np.ma.masked_equal([0, 1, 0, 1, 0, 7], 7), {}, ["masked entries"]),
        (torch.tensor(X).to_sparse(), Y, {}, ["dense", "to_dense()"]),
        (X[:2], [0, 1], {"features": [X[0, :, 0], X[0, :4, 0]]}, ["cloud 1", "features"]),
        (X[:2], [0, 1], {"features": [X[0, :, 0]]}, ["2 clouds of X", "got 1"]),
        (X[:2], [0, 1], {"features": 3}, ["features", "int"]),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(given: Any, y: Any, options: Any, said: list[str]) -> None:
    with pytest.raises(PointsetError) as raised:
        pointset.from_arrays(given, y, **options)
    assert all(word in str(raised.value) for word in said), raised.value
    assert "\n" not in str(raised.value)


def test_all_bad_clouds_are_named_and_may_be_left_out() -> None:
    with pytest.raises(UnreadableShapesError) as raised:
        pointset.from_arrays([X[0], NAN[4], X[1, :0]], [0, 1, 0])
    assert list(raised.value.failures) == ["000001", "000002"]
    with pytest.warns(UserWarning, match="1 of 3 clouds") as warned:
        sets = pointset.from_arrays([X[0], NAN[4], X[1]], ["a", "b", "c"], on_error="skip")
    assert warned[0].filename == __file__
    assert (sets.labels.tolist(), sets.describe()["left_out"]) == ([0, 2], ["000001"])


def test_the_error_of_unusable_clouds_can_be_pickled() -> None:
    error = UnreadableShapesError({"a": "a has no points"}, 2, "correct them", "clouds")
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), vars(copied)) == (str(error), vars(error))
