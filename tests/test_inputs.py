"""Messages of public functions for wrong inputs: one sentence with the type and the shape."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data import load_card, open_scan
from pointset.data.augment import Compose, Jitter, RotateAny, RotateUp, Scale, Shift
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets, Pool
from pointset.errors import PointsetError, described
from pointset.evaluation import Evaluation
from pointset.evaluation.corruptions import list_corruptions
from pointset.evaluation.robustness import robustness
from pointset.explain.critical_points import critical_points
from pointset.explain.specialisation import specialisation
from pointset.inputs import InputError
from pointset.streaming import stream_logits
from pointset.tasks import task_recipe
from pointset.viz import (
    Camera,
    draw_clusters,
    draw_maps,
    draw_predictions,
    export_cloud,
    make_page,
)

MODEL = pointset.create_model("rff-max", classes=3, dim=8)
CLOUD, BATCH = torch.zeros(5, 3), torch.zeros(2, 5, 3)
SETS = PointSets(
    Pool(np.ones((3, 5, 3), "f4"), list("xyz"), np.arange(3), list("abc"), "uniform"), DataOptions(points=4)
)
GENERATOR = torch.Generator()
EVALUATION = Evaluation(np.zeros((2, 3)), np.zeros(2, int), list("abc"))


def pool(**changes: Any) -> Pool:
    """A pool of three clouds, with some fields replaced."""
    parts = {"points": np.ones((3, 5, 3)), "names": list("xyz"), "labels": np.arange(3), "classes": list("abc")}
    return Pool(**{**parts, "sampler": "uniform", **changes})


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "evaluate, a name": (
        lambda: pointset.evaluate("rff-max", SETS),
        r"model must be a torch module.*create_model\('rff-max'\)",
    ),
    "evaluate, a tensor": (
        lambda: pointset.evaluate(MODEL, BATCH),
        r"data must be .*PointSets, got float32 \[2, 5, 3\]",
    ),
    "evaluate, no shapes": (lambda: pointset.evaluate(MODEL, SETS.subset([])), "no shape to evaluate on"),
    "evaluate, 4 inputs": (
        lambda: pointset.evaluate(pointset.create_model("rff-max", 3, inputs=4), SETS),
        "takes 4 numbers of each point, .* have 3: create the model with inputs=3",
    ),
    "evaluate, a batch of 0": (lambda: pointset.evaluate(MODEL, SETS, batch_size=0), "batch_size .*at least 1, got 0"),
    "fit, a dict": (
        lambda: pointset.fit(MODEL, SETS, {"epochs": 1}),
        "recipe must be a Recipe or None, got {'epochs': 1}",
    ),
    "robustness": (lambda: robustness(MODEL, BATCH), "data must be .*PointSets"),
    "corruptions": (lambda: list_corruptions("foo"), "family must be one of 'density', 'noise'.*got 'foo'"),
    "maps, a name": (lambda: pointset.attention_maps("isab4-pma", CLOUD), "model must be a torch module"),
    "critical points": (lambda: critical_points(MODEL, BATCH), r"one cloud \[n, 3\].*got float32 \[2, 5, 3\]"),
    "specialisation": (lambda: specialisation(MODEL, BATCH), "sets must be .*PointSets"),
    "export, a name": (lambda: pointset.export_model("rff-max", "x.pt2"), "model must be a torch module"),
    "stream": (lambda: pointset.stream_attention("isab4-pma", CLOUD), "model must be a torch module"),
    "inputs": (lambda: pointset.create_model("rff-max", inputs=0), "inputs must be .*at least 1, got 0"),
    "a pooling": (
        lambda: pointset.register_pooling("mine")(5),
        "pooling 'mine' must be a class or a function, got 5",
    ),
    "a split": (lambda: pointset.load_dataset("shapes10", 5), "split must be text, got 5"),
    "classes of data": (lambda: pointset.load_dataset("shapes10", classes="car"), "classes must be a list.*'car'"),
    "a pool": (lambda: PointSets(BATCH, DataOptions(points=2)), "pool must be of type Pool, got float32"),
    "a share": (lambda: SETS.split_validation("x", 0), "fraction must be a number, got 'x'"),
    "a picture": (lambda: draw_maps(CLOUD, CLOUD), "attention must be an attention map.*got float32"),
    "a page": (lambda: make_page([5], CLOUD), "attention must be an attention map.*got int"),
    "a camera": (lambda: Camera(azimuth=None), "azimuth must be a number, got None"),
    "said": (lambda: draw_predictions([1.0], {"a": ["x"]}), "a must be numbers, got list"),
    "sets in the plane": (
        lambda: draw_clusters(None, {}),
        r"points must be a tensor or an array \[B, n, 2\], got None",
    ),
    "a task's recipe": (lambda: task_recipe(steps=np.zeros(2)), "steps must be a whole number .*got float64"),
    "a shape": (lambda: SETS.subset([99]), "indices has 99, and there are 3, counted from 0"),
    "shapes": (lambda: SETS.subset(BATCH), r"indices must be whole numbers \[k\], got float32 \[2, 5, 3\]"),
    "shapes by a mask": (lambda: SETS.subset(np.array([True, False, True])), r"indices must be whole .*got bool \[3\]"),
    "rows": (lambda: PointSets(pool(), DataOptions(points=2), rows=["x"]), "rows must be whole numbers.*got list"),
    "a cut": (lambda: SETS.split_validation(0.5, -1), r"seed must be .*got -1"),
    "points of a pool": (
        lambda: pool(points=BATCH),
        r"points must be an array of floats \[3, P, 3\].*got float32 \[2, 5",
    ),
    "points of others": (lambda: pool(points=np.ones((2, 5, 3))), r"points .*\[3, P, 3\].*got float64 \[2, 5, 3\]"),
    "labels": (lambda: pool(labels=np.arange(4)), r"labels must be .*integers \[3\].*got int64 \[4\]"),
    "normals": (
        lambda: pool(normals=np.ones((3, 4, 3))),
        r"normals .*as the points, \[3, 5, 3\], got float64 \[3, 4, 3\]",
    ),
    "offsets": (
        lambda: pool(points=np.ones((9, 3)), offsets=np.array([0, 4, 2, 9])),
        "offsets must rise from 0 to the 9 points, got 0 to 9",
    ),
    "offsets of others": (lambda: pool(points=np.ones((9, 3)), offsets=np.arange(3)), r"offsets .*\[4\].*int64 \[3\]"),
    "a temperature": (lambda: EVALUATION.at_temperature("x"), "temperature must be a finite number above 0, got 'x'"),
    "a card": (lambda: load_card(5), "name must be text, got 5"),
    "a scan's piece": (lambda: open_scan("x.npy", piece=0), "piece must be .*at least 1, got 0"),
    "a model to stream": (lambda: stream_logits("x", CLOUD), "model must be a torch module"),
    **{
        f"{type(augment).__name__}, {what}": (lambda augment=augment, given=given: augment(*given), words)
        for augment in (Scale(), Jitter(), Shift(), RotateUp(), RotateAny(), Compose((Scale(),)))
        for what, given, words in (
            (
                "an array",
                (BATCH.numpy(), GENERATOR),
                r"points must be a floating tensor \[B, n, 3\], got float32 \[2, 5, 3\]",
            ),
            ("one cloud", (CLOUD, GENERATOR), r"got float32 \[5, 3\]: for one cloud give points\[None\]"),
            ("a wrong mask", (BATCH, GENERATOR, CLOUD), r"mask must be bool \[2, 5\].*got float32 \[5, 3\]"),
        )
    },
    "a deviation": (lambda: Jitter(sigma=float("nan")), "sigma must be a finite number, at least 0, got nan"),
    "a 3D file": (lambda: export_cloud(None, CLOUD, "x.ply"), "attention must be an attention map.*got None"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_sentence(mistake: Callable[[], Any], words: str) -> None:
    with pytest.raises(PointsetError, match=words) as told:
        mistake()
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.zeros(2, 3), "float32 [2, 3]"),
        (np.zeros((2, 3)), "float64 [2, 3]"),
        (np.zeros(4, ">i2"), ">i2 [4]"),
        ([1], "list"),
        (None, "None"),
    ],
)
def test_values_are_described_by_type_and_shape(value: Any, words: str) -> None:
    assert described(value) == words


def test_a_refused_input_is_both_kinds_of_error() -> None:
    assert issubclass(InputError, PointsetError)
    assert issubclass(InputError, ValueError)


def test_a_masked_array_is_not_taken_for_numbers() -> None:
    model = pointset.create_model("rff-max", classes=2, dim=8)
    clouds = np.ma.masked_less(np.arange(24.0).reshape(2, 4, 3), 5)
    for give in (model, lambda given: stream_logits(model.eval(), given[0])):
        with pytest.raises(PointsetError, match="has masked entries, which have no value: leave those points out"):
            give(clouds)
    assert model(np.ma.masked_less(np.ones((2, 4, 3)), 0)).shape == (2, 2)
