"""Messages of public functions for wrong inputs: one sentence with the type and the shape."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset.data import load_card
from pointset.data.augment import Compose, Drop, Jitter, RotateUp, Scale
from pointset.data.augmentations import Background, Crop, CutMix, augmentation_from_names, recipe_augmentations
from pointset.data.options import DataOptions
from pointset.data.point_sets import PointSets, Pool
from pointset.errors import PointsetError
from pointset.evaluation import Evaluation
from pointset.explain.importance import critical_points
from pointset.explain.specialisation import specialisation
from pointset.inputs import InputError
from pointset.tasks import task_recipe

MODEL = pointset.create_model("rff-max", classes=3, dim=8)
WIDER = pointset.create_model("rff-max", 3, inputs=4)
CLOUD, BATCH = torch.zeros(5, 3), torch.zeros(2, 5, 3)
POINTS = DataOptions(points=4)
SETS = PointSets(Pool(np.ones((3, 5, 3), "f4"), list("xyz"), np.arange(3), list("abc"), "uniform"), POINTS)
GENERATOR = torch.Generator()
EVALUATION = Evaluation(np.zeros((2, 3)), np.zeros(2, int), list("abc"))


def pool(**changes: Any) -> Pool:
    """A pool of three clouds, with some fields replaced."""
    parts = {"points": np.ones((3, 5, 3)), "names": list("xyz"), "labels": np.arange(3), "classes": list("abc")}
    return Pool(**{**parts, "sampler": "uniform", **changes})


MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "evaluate, a name": (lambda: pointset.evaluate("rff-max", SETS), "model|'rff-max'|create_model"),
    "evaluate, a tensor": (lambda: pointset.evaluate(MODEL, BATCH), "data|PointSets|float32 [2, 5, 3]"),
    "evaluate, no shapes": (lambda: pointset.evaluate(MODEL, SETS.subset([])), "no shape"),
    "evaluate, 4 inputs": (lambda: pointset.evaluate(WIDER, SETS), "4|inputs=3"),
    "evaluate, a batch of 0": (lambda: pointset.evaluate(MODEL, SETS, batch_size=0), "batch_size|at least 1|got 0"),
    "fit, a dict": (lambda: pointset.fit(MODEL, SETS, {"epochs": 1}), "recipe|Recipe|{'epochs': 1}"),
    "maps, a name": (lambda: pointset.attention_maps("isab4-pma", CLOUD), "model|torch module"),
    "critical points": (lambda: critical_points(MODEL, BATCH), "[n, 3]|float32 [2, 5, 3]"),
    "specialisation": (lambda: specialisation(MODEL, BATCH), "sets|PointSets"),
    "export, a name": (lambda: pointset.export_model("rff-max", "x.pt2"), "model|torch module"),
    "inputs": (lambda: pointset.create_model("rff-max", inputs=0), "inputs|at least 1|got 0"),
    "a pooling": (lambda: pointset.register_pooling("mine")(5), "'mine'|got 5"),
    "a split": (lambda: pointset.load_dataset("shapes10", 5), "split|got 5"),
    "a pool": (lambda: PointSets(BATCH, DataOptions(points=2)), "pool|Pool|float32"),
    "a share": (lambda: SETS.split_validation("x", 0), "fraction|'x'"),
    "a task's recipe": (lambda: task_recipe(steps=np.zeros(2)), "steps|float64"),
    "a shape": (lambda: SETS.subset([99]), "indices|99|3"),
    "shapes": (lambda: SETS.subset(BATCH), "indices|[k]|float32 [2, 5, 3]"),
    "a cut": (lambda: SETS.split_validation(0.5, -1), "seed|-1"),
    "points of a pool": (lambda: pool(points=BATCH), "points|[3, P, 3]|float32 [2, 5"),
    "labels": (lambda: pool(labels=np.arange(4)), "labels|integers [3]|int64 [4]"),
    "normals": (lambda: pool(arrays={"normals": np.ones((3, 4, 3))}), "normals|[3, 5, 3]|float64 [3, 4, 3]"),
    "offsets": (lambda: pool(points=np.ones((9, 3)), offsets=np.array([0, 4, 2, 9])), "offsets|0 to 9"),
    "offsets of others": (lambda: pool(points=np.ones((9, 3)), offsets=np.arange(3)), "offsets|[4]|int64 [3]"),
    "a temperature": (lambda: EVALUATION.at_temperature("x"), "temperature|'x'"),
    "a card": (lambda: load_card(5), "name|got 5"),
    "an augmentation": (lambda: Jitter()(BATCH.numpy(), GENERATOR), "points|[B, n, 3]|float32 [2, 5, 3]"),
    "one cloud to augment": (lambda: RotateUp()(CLOUD, GENERATOR), "float32 [5, 3]|points[None]"),
    "a wrong mask": (lambda: Compose((Scale(),))(BATCH, GENERATOR, CLOUD), "mask|bool [2, 5]|float32 [5, 3]"),
    "a deviation": (lambda: Jitter(sigma=float("nan")), "sigma|nan"),
    "a lowest scale": (lambda: Scale(0.0, 1.0), "low|0.0"),
    "a dropped share": (lambda: Drop(1.5), "most|1.5"),
    "an axis": (lambda: RotateUp("x"), "'y', 'z'|'x'"),
    "a whole background": (lambda: Background(most=1.0), "most|1.0"),
    "no crop": (lambda: Crop(probability=0.0), "probability|0.0"),
    "an augmentation's name": (lambda: augmentation_from_names(("scale", "jiter")), "rotate-any|cutmix-k|'jiter'"),
    "a mixing's name": (lambda: recipe_augmentations(("scale", "cutmix")), "scale|drop|cutmix-r, cutmix-k|'cutmix'"),
    "a mixing before": (lambda: recipe_augmentations(("cutmix-r", "scale")), "cutmix-r|put it last"),
    "two mixings": (lambda: recipe_augmentations(("cutmix-k", "cutmix-k")), "cutmix-k|put it last"),
    "a mixing": (lambda: CutMix("k"), "which|'random', 'nearest'|'k'"),
    "a mixed share": (lambda: CutMix(probability=1.5), "probability|1.5"),
    "no points": (lambda: DataOptions(points=0), "points|got 0"),
    "a normalisation": (lambda: DataOptions(normalize="box"), "unit-sphere|'box'"),
    "too many points": (lambda: PointSets(pool(), DataOptions(points=6), name="x"), "points=6|5 that x holds"),
    "a whole share": (lambda: SETS.split_validation(1.0, 0), "fraction|1.0"),
    "an empty share": (lambda: SETS.split_validation(0.0, 0), "fraction|0.0"),
    "a share of no shape": (lambda: SETS.split_validation(0.01, 0), "fraction=0.01 of 3 shapes"),
    "a label too many": (lambda: PointSets(pool(labels=np.arange(1, 4)), POINTS), "'z' has label 3|3 classes"),
    "a negative label": (lambda: PointSets(pool(labels=np.arange(-1, 2)), POINTS), "'x' has label -1"),
}


@pytest.mark.parametrize(("mistake", "words"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_told_in_one_sentence_with_names_and_values(mistake: Callable[[], Any], words: str) -> None:
    with pytest.raises(PointsetError) as told:
        mistake()
    assert "\n" not in str(told.value)
    assert [word for word in words.split("|") if word not in str(told.value)] == []


def test_a_refused_input_is_both_kinds_of_error() -> None:
    assert issubclass(InputError, PointsetError)
    assert issubclass(InputError, ValueError)


def test_a_masked_array_is_not_taken_for_numbers() -> None:
    model = pointset.create_model("rff-max", classes=2, dim=8)
    clouds = np.ma.masked_less(np.arange(24.0).reshape(2, 4, 3), 5)
    with pytest.raises(PointsetError, match="has masked entries, which have no value: leave those points out"):
        model(clouds)
    assert model(np.ma.masked_less(np.ones((2, 4, 3)), 0)).shape == (2, 2)
