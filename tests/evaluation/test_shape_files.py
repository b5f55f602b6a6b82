"""After a class that is not to be trusted: the other axis, another pose, or none of the classes."""

import numpy as np
import pytest
import torch

import pointset
from pointset.data.catalogue.folders import ShapeFile
from pointset.evaluation.shape_files import next_step
from pointset.zoo.pretrained import ANY_POSE, USUAL

pytestmark = pytest.mark.slow
LAID = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], np.float32)
"""Rows that are multiplied by it have y up."""
TURNED = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0].astype(np.float32)


@pytest.fixture(scope="module")
def table():
    test = pointset.load_dataset("shapes10", split="test", points=1024, normalize="none")
    return test.points[int((test.labels == test.classes.index("table")).nonzero()[0])].numpy()


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


def test_most_of_several_shapes_decide(table, tmp_path):
    files = [ShapeFile(tmp_path / f"{number}.npy", f"{number}.npy") for number in range(3)]
    for file in files:
        np.save(file.path, table @ LAID)
    model, _ = pointset.load_run(USUAL)
    assert next_step(model, files, up="z") == "try --up y, with which 3 of 3 are surer"
