"""Messages of public functions for wrong inputs: one sentence with the type and the shape."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset import DataOptions, Evaluation, PointsetError, PointSets, corrupt, data, fit_automatic, nn, viz
from pointset.comparison.pairs import compare_models
from pointset.configuration import AttentionOptions
from pointset.data.augmentations import CutMix, Drop, recipe_augmentations
from pointset.data.groups import group_keys
from pointset.data.preparation import Preparation
from pointset.evaluation import accuracy_by_size, robustness
from pointset.evaluation.calibration import reliability
from pointset.explain.faithfulness import check_explanations
from pointset.explain.importance import critical_points, occlusion_influence
from pointset.explain.specialisation import specialisation
from pointset.tasks import task_recipe
from pointset.training.objectives import Classification
from pointset.viz.live import make_live_page
from pointset.viz.rows import as_cloud
from pointset.zoo.classifiers import Classifier, checked_points
from pointset.zoo.transfer import start_from

MODEL = pointset.create_model("rff-max", classes=3, dim=8)
ATTENDING = pointset.create_model("isab3-pma", classes=3, dim=8)
CENTRED: Any = pointset.create_model("rff-max", classes=3, dim=8)
CENTRED.preparation = Preparation(normalize="unit-sphere")
SIX = pointset.create_model("rff-max", dim=8, inputs=6)
WIDER = pointset.create_model("rff-max", 3, inputs=4)
CLOUD, BATCH = torch.zeros(5, 3), torch.zeros(2, 5, 3)
POINTS = DataOptions(points=4)
SETS = PointSets(data.Pool(np.ones((3, 5, 3), "f4"), list("xyz"), np.arange(3), list("abc"), "uniform"), POINTS)
TRIANGLE = pointset.data.Mesh(np.eye(3), np.array([[0, 1, 2]]))
GENERATOR = torch.Generator()
EVALUATION = Evaluation(np.zeros((2, 3)), np.zeros(2, int), list("abc"))


def pool(**changes: Any) -> data.Pool:
    """A pool of three clouds, with some fields replaced."""
    parts = {"points": np.ones((3, 5, 3)), "names": list("xyz"), "labels": np.arange(3), "classes": list("abc")}
    return data.Pool(**{**parts, "sampler": "uniform", **changes})


TWINS = PointSets(pool(labels=np.zeros(3, int)), POINTS)


def weigh(function: Callable[..., Any]) -> Any:
    return nn.Weights(AttentionOptions(heads=2, weights=function))(torch.zeros(3, 2, 4, 6))


def weigh_classes(words: str) -> Any:
    return Classification(SETS, pointset.Recipe(class_weights=words), seed=0)


def look(points: Any, mask: Any = None) -> Any:
    return pointset.attention_maps(ATTENDING, points, mask)


def find_critical(name: str) -> Any:
    return critical_points(pointset.create_model(name), CLOUD)


def look_into(name: str) -> Any:
    return pointset.attention_maps(pointset.create_model(name), CLOUD)


def as_javascript(name: str, options: dict[str, Any]) -> Any:
    return pointset.to_plain_data(pointset.create_model(name, classes=4, dim=8, **options))


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: pointset.evaluate("rff-max", SETS), "model|'rff-max'|create_model"),
    (lambda: pointset.evaluate(MODEL, BATCH), "data|PointSets|float32 [2, 5, 3]"),
    (lambda: pointset.evaluate(MODEL, SETS.subset([])), "no shape"),
    (lambda: pointset.evaluate(WIDER, SETS), "4|inputs=3"),
    (lambda: pointset.evaluate(MODEL, SETS, batch_size=0), "batch_size|at least 1|got 0"),
    (lambda: pointset.fit(MODEL, SETS, {"epochs": 1}), "recipe|Recipe|{'epochs': 1}"),
    (lambda: pointset.attention_maps("isab4-pma", CLOUD), "model|torch module"),
    (lambda: critical_points(MODEL, BATCH), "[n, 3]|float32 [2, 5, 3]"),
    (lambda: specialisation(MODEL, BATCH), "sets|PointSets"),
    (lambda: pointset.export_model("rff-max", "x.pt2"), "model|torch module"),
    (lambda: pointset.create_model("rff-max", inputs=0), "inputs|at least 1|got 0"),
    (lambda: pointset.register_pooling("mine")(5), "'mine'|got 5"),
    (lambda: pointset.load_dataset("shapes10", 5), "split|got 5"),
    (lambda: SETS.split_validation("x", 0), "fraction|'x'"),
    (lambda: task_recipe(steps=np.zeros(2)), "steps|float64"),
    (lambda: SETS.subset([99]), "indices|99|3"),
    (lambda: SETS.subset(BATCH), "indices|[k]|float32 [2, 5, 3]"),
    (lambda: SETS.split_validation(0.5, -1), "seed|-1"),
    (lambda: EVALUATION.at_temperature("x"), "temperature|'x'"),
    (lambda: data.load_card(5), "name|got 5"),
    (lambda: data.Jitter()(BATCH.numpy(), GENERATOR), "points|[B, n, 3]|float32 [2, 5, 3]"),
    (lambda: data.Compose((data.Scale(),))(BATCH, GENERATOR, CLOUD), "mask|bool [2, 5]|float32 [5, 3]"),
    (lambda: data.Jitter(sigma=float("nan")), "sigma|nan"),
    (lambda: data.Scale(0.0, 1.0), "low|0.0"),
    (lambda: Drop(1.5), "most|1.5"),
    (lambda: data.RotateUp("x"), "'y', 'z'|'x'"),
    (lambda: data.Background(most=1.0), "most|1.0"),
    (lambda: data.Crop(probability=0.0), "probability|0.0"),
    (lambda: data.augmentation_from_names(("scale", "jiter")), "rotate-any|cutmix-k|'jiter'"),
    (lambda: recipe_augmentations(("scale", "cutmix")), "scale|drop|cutmix-r, cutmix-k|'cutmix'"),
    (lambda: recipe_augmentations(("cutmix-r", "scale")), "cutmix-r|put it last"),
    (lambda: CutMix("k"), "which|'random', 'nearest'|'k'"),
    (lambda: CutMix(probability=1.5), "probability|1.5"),
    (lambda: DataOptions(points=0), "points|got 0"),
    (lambda: DataOptions(normalize="box"), "unit-sphere|'box'"),
    (lambda: DataOptions(up="z", turned=("stl",)), "turned|'stl'|such as .obj|up=z"),
    (lambda: DataOptions(turned=(".stl",)), "turned|'.stl'|up=z"),
    (lambda: PointSets(pool(), DataOptions(points=6), name="x"), "points=6|5 that x holds"),
    (lambda: SETS.split_validation(1.0, 0), "fraction|1.0"),
    (lambda: SETS.split_validation(0.01, 0), "fraction=0.01 of 3 shapes"),
    (lambda: PointSets(pool(labels=np.arange(1, 4)), POINTS), "'z' has label 3|3 classes"),
    (lambda: PointSets(pool(labels=np.arange(-1, 2)), POINTS), "'x' has label -1"),
    (lambda: pointset.evaluate(pointset.create_model("rff-max", 5, dim=8), SETS), "5 classes and | has 3"),
    (lambda: pointset.create_model("dgcnn", classes=3).embed(torch.rand(2, 30, 3)), "embedding"),
    (lambda: nn.Multihead(3, 3, 10), "dim must be a multiple of heads, got dim=10 and heads=4"),
    (lambda: nn.MAB(3, 3, 12, AttentionOptions(form="paper")), "dim_query=3 must equal dim=12"),
    (lambda: nn.SetNorm(8, groups=3), "dim must be a multiple of groups, got dim=8 and groups=3"),
    (nn.StatisticPool, "statistics of StatisticPool must be a list of max, |, got "),
    (type("Middle", (nn.StatisticPool,), {"statistics": ("median",)}), "statistics of Middle |, got |median"),
    (lambda: weigh(lambda z: z.sum(dim=-1)), "'<lambda>' must return weights [3, 2, 4, 6], got [3, 2, 4]"),
    (lambda: weigh(lambda z: None), "'<lambda>' must return weights [3, 2, 4, 6], got NoneType"),
    (lambda: reliability(np.zeros((0, 3)), np.zeros(0, int), bins=15), "got 0 and 15"),
    (lambda: reliability(np.zeros((4, 3)), np.zeros(4, int), bins=0), "got 4 and 0"),
    (lambda: robustness(MODEL, SETS, ["gaussian", "fog"], [1]), "no corruption is called 'fog'"),
    (lambda: robustness(MODEL, SETS, ["gaussian"], [1, 7]), "severity of gaussian|7"),
    (lambda: accuracy_by_size(MODEL, SETS, (8, 0)), "points|0"),
    (lambda: corrupt(BATCH, "gausian", 1), "'gausian'|did you mean gaussian|upsampling"),
    (lambda: corrupt(BATCH, "shear", 0), "severity of shear|1, 2, 3, 4 or 5|0"),
    (lambda: corrupt(torch.zeros(9), "shear"), "[B, n, 3]|got float32 [9]"),
    (lambda: corrupt(BATCH.long(), "shear"), "int64"),
    (lambda: corrupt(np.zeros((4, 3)), "shear", 3, -1), "-1"),
    (lambda: pointset.check_symmetry(lambda X, mask: [X]), "tensor|list"),
    (lambda: pointset.check_symmetry(lambda X, mask: X, sizes=(0, 3)), "sizes | got (0, 3)"),
    (lambda: pointset.check_symmetry(lambda X, mask: X.flatten(1)), "from [3, 3] to | one row for each element"),
    (lambda: pointset.check_symmetry(torch.nn.ReLU()), "ReLU |X [3, 1, 3] and a mask [3, 1] (TypeError: |mask=False"),
    (lambda: pointset.check_symmetry(torch.nn.Linear(4, 2), mask=False), "Linear |X [3, 1, 3] alone | dim="),
    (lambda: occlusion_influence(MODEL, BATCH), "n at least 2, got float32 [2, 5, 3]"),
    (lambda: occlusion_influence(MODEL, CLOUD * math.nan), "finite"),
    (lambda: occlusion_influence(MODEL, CLOUD, label=3), "label must be in [0, 3), got 3"),
    (lambda: occlusion_influence(MODEL, CLOUD, neighbours=0), "neighbours | 5 points, got 0"),
    (lambda: occlusion_influence(MODEL, CLOUD, neighbours=5), "neighbours | 5 points, got 5"),
    (lambda: critical_points(MODEL, CLOUD * math.nan), "must be finite"),
    (lambda: look(torch.zeros(5, 4)), "points must be [n, 3]"),
    (lambda: look(BATCH, torch.tensor([[True] * 5, [False] * 5])), "got an empty one"),
    (lambda: look(CLOUD * math.nan), "must be finite"),
    (lambda: look(BATCH, torch.ones(2, 4, dtype=torch.bool)), "mask must be bool [2, 5]"),
    (lambda: check_explanations(MODEL, []), "0 clouds"),
    (lambda: check_explanations(MODEL, [CLOUD], ["saliency"]), "'saliency'"),
    (lambda: check_explanations(MODEL, [CLOUD], ["attention"]), "attention"),
    (lambda: specialisation(pointset.create_model("sab-max", classes=3, dim=8), TWINS), "must have inducing"),
    (lambda: specialisation(ATTENDING, TWINS, "encoder.7"), "'encoder.7': choose from encoder.0.reads"),
    (lambda: specialisation(ATTENDING, SETS), "no class with two shapes"),
    (lambda: viz.Camera(up="x"), "'y', 'z', got 'x'"),
    (lambda: viz.Camera(elevation=91), "[-90, 90]| got 91"),
    (lambda: viz.Camera(distance=1.0), "at least 1.5| got 1.0"),
    (lambda: viz.draw_clouds([]), "at least one cloud"),
    (lambda: viz.draw_clouds([CLOUD], names=["a", "b"]), "one name each"),
    (lambda: viz.draw_clouds([CLOUD], columns=0), "columns"),
    (lambda: viz.draw_specialisation({}, {}), "must have the same measures"),
    (lambda: as_cloud(np.zeros((2, 4, 3))), "[n, 3], got [2, 4, 3]"),
    (lambda: as_cloud(np.zeros((0, 3))), "no points"),
    (lambda: as_cloud(np.array([[0.0, 0, 0], [0, np.nan, 0]])), "point 1 | not finite"),
    (lambda: as_cloud("points"), "[n, 3]| got str"),
    (lambda: make_live_page([]), "1 to 3 models, got 0"),
    (lambda: make_live_page([pointset.to_plain_data(MODEL)] * 4), "got 4"),
    (lambda: make_live_page([pointset.to_plain_data(SIX)]), "needs 6 numbers"),
    (lambda: pointset.fit(MODEL, SETS, seed=-1, run="run"), "seed must be"),
    (lambda: pointset.fit(MODEL, SETS, seed=2**63, run="run"), "seed must be"),
    (lambda: fit_automatic(TWINS, progress=False), "1 class"),
    (lambda: start_from(pointset.create_model("pointnet", classes=3), SETS), "an encoder and a pooling"),
    (lambda: data.normalize_points(CLOUD, "unit-sphere"), "float32 [5, 3]: for one cloud give points[None]"),
    (lambda: data.normalize_points(BATCH.long(), "unit-sphere"), "floating | got int64 [2, 5, 3]"),
    (lambda: data.normalize_points(BATCH, "unit-sphere", BATCH[:, :4, 0] > 0), "mask must be bool [2, 5]| bool [2, 4]"),
    (lambda: data.normalize_points(BATCH, "sphere"), "unit-sphere, standardize, center-standardize|none|'sphere'"),
    (lambda: data.sample_points(TRIANGLE, 0, seed=0), "n must be | at least 1, got 0"),
    (lambda: data.sample_points(TRIANGLE, 1, seed=-1), "seed |-1"),
    (lambda: data.sample_points(TRIANGLE, 1, seed=0, sampler="even"), "uniform, fps, poisson, got 'even'"),
    (lambda: data.downsample(np.zeros((5, 2)), 3, seed=0), "finite numbers [N, 3], got [5, 2]"),
    (lambda: data.downsample(np.full((5, 3), np.nan), 3, seed=0), "finite"),
    (lambda: data.downsample(np.zeros((5, 3)), 6, seed=0), "from 1 to 5|got 6"),
    (lambda: data.downsample(np.zeros((5, 3)), 0, seed=0), "from 1 to 5|got 0"),
    (lambda: data.downsample(np.zeros((5, 3)), 3, seed=-1), "seed |-1"),
    (lambda: data.downsample(np.zeros((5, 3)), 3, seed=0, sampler="poisson"), "uniform or fps|'poisson'"),
    (lambda: Preparation().prepare(np.zeros((5, 4))), "[n, 3]"),
    (lambda: Preparation().prepare(np.zeros((2, 5, 3))), "[n, 3]"),
    (lambda: Preparation().prepare(np.ones((5, 3))), "no extent"),
    (lambda: Preparation().prepare(np.full((5, 3), np.nan)), "not finite"),
    (lambda: Preparation().prepare(np.zeros((0, 3))), "no point"),
    (lambda: Preparation().prepare("missing.off"), "missing.off"),
    (lambda: group_keys("(", ["shoe_1.pcd"]), "not a regular expression"),
    (lambda: group_keys("boot", ["shoe_1.pcd"]), "group of 'shoe_1.pcd'"),
    (lambda: group_keys("x.csv", ["shoe_1.pcd"]), "groups=x.csv must be a table"),
    (lambda: SETS.grouped([0, 1]), "groups must be one for each of the 3 sets, got 2"),
    (lambda: SETS.grouped(np.zeros((3, 1))), "groups must be one for each of the 3 sets, got float64 [3, 1]"),
]
OPTIONS = [
    ({"dim": 10}, "multiple of heads, got dim=10 and heads=4"),
    ({"norm": "instance"}, "norm=instance turns a single pooled row into zeros"),
    ({"weights": "sparsmax"}, "weights must be | one of 'softmax', 'sparsemax', | got ('sparsmax',)"),
    ({"weights": ("softmax", "sparsemax")}, "weights | heads=4, got ('softmax', 'sparsemax')"),
    ({"coverage": "seeds"}, "coverage='seeds' needs weights with an upper bound, got weights=softmax"),
    ({"weights": "csparsemax", "bound": 0.5}, "bound must be | at least 1, got 0.5"),
    ({"width": 3}, "'width' is not an option of ModelOptions: did you mean"),
    ({"prenorm": True}, "prenorm needs a norm"),
    ({"prenorm": True, "norm": "none", "form": "paper"}, "prenorm needs a norm"),
    ({"classes": 0}, "classes must be | at least 1, got 0"),
    ({"pretrained": "modelnet40-1025"}, "isab16-pma.modelnet40-1025|did you mean |isab16-pma.modelnet40-1024"),
    ({"pretrained": "modelnet40-1024", "dim": 13}, "dim=|, not 13"),
    ({"pretrained": "modelnet40-1024", "inputs": 6}, "inputs=3, not 6"),
]
NAMES = [
    ("isab16-pam", "did you mean isab16-pma"),
    ("isab0-max", "did you mean |isab16-max"),
    ("rff", "did you mean rff-"),
    ("isab16-max+aggr.lstm", "'lstm' is not an aggregation of sets |choose from attentional, |softmax"),
    ("isab16-max+cov257", "cov257 gives 33,153 numbers for each set: give at most cov256"),
    ("isab99999999999-max", "at most 4096"),  # before memory is asked for
]
RECIPES = [
    ({"patience": 3}, "patience=3 needs a validation split"),
    ({"warmup": 1.0}, "warmup must be in [0, 1), got 1.0"),
    ({"step_every": 100}, "step_every=100 has no effect with schedule 'cosine'"),
    ({"schedule": "constant", "step_factor": 0.5}, "step_factor=0.5 has no effect with schedule 'constant'"),
    ({"train_points": (64, 32)}, "train_points must be the fewest and then the most points, got [64, 32]"),
    ({"train_points": (8, 64), "last_points": (9, 8)}, "last_points must be the fewest | got [9, 8]"),
    ({"last_points": (8, 9)}, "last_points=[8, 9] needs the sizes of the first epoch: set train_points"),
    ({"train_points": (0, 5)}, "train_points must be two numbers of points, | got (0, 5)"),
]
MESHES = [
    ({"vertices": np.eye(3)[:, :2]}, "vertices must be numbers [V, 3], got float64 [3, 2]"),
    ({"vertices": np.array([["a"] * 3] * 3)}, "vertices must be numbers"),
    ({"faces": np.array([[0, 1, 2, 2]])}, "faces must be integers [F, 3], got int64 [1, 4]"),
    ({"faces": np.array([[0.0, 1.0, 2.0]])}, "faces must be integers"),
    ({"faces": np.empty((0, 3), int)}, "at least one face, got 3 vertices and no face"),
    ({"vertices": np.diag([1, np.inf, 1])}, "vertex 1 has a coordinate that is not finite"),
    ({"faces": np.array([[0, 1, 2], [0, 1, 3]])}, "face 1 is [0, 1, 3], but vertices run from 0 to 2"),
    ({"faces": np.array([[0, 1, -1]])}, "face 0 is [0, 1, -1]"),
]
POINTS_AND_MASKS = [
    (torch.zeros(3), None, "points must be [B, n, 3] or, of one cloud, [n, 3], got float32 [3]"),
    (torch.zeros(2, 5, 4), None, "points must be [B, n, 3], got float32 [2, 5, 4]"),
    (BATCH.tolist(), None, "points must be [B, n, 3], got list: give a tensor or an array"),
    (BATCH.to(torch.complex64), None, "got complex64 [2, 5, 3]: | real numbers"),
    (np.array([["a", "b", "c"]]), None, "got <U1 [1, 3]: | real numbers"),
    (torch.full((1, 5, 3), 2**40 + 1), None, "int64 | too large for float32"),
    (CLOUD, torch.ones(4, dtype=torch.bool), "mask must be bool [5]| got bool [4]"),
    (BATCH, torch.ones(2, 5), "mask must be bool [2, 5]"),
]
CLOUDS = [
    ([], "clouds to predict are missing"),
    (np.zeros((0, 4, 3)), "clouds to predict are missing"),
    (np.zeros((2, 4, 2)), "[B, n, 3]|float64 [2, 4, 2]"),
    ([np.eye(4, 3), "chair"], "cloud 1: chair: the file or folder does not exist"),
    (np.array([[[0.0, 1, 2]], [[0, np.nan, 2]]]), "cloud 1: |not finite"),
    ("chair.off", "got str"),
]
IN_JAVASCRIPT = [
    ("isab3-max", {"score": "additive"}, "encoder.0.reads.multihead|AdditiveScore"),
    ("rff-pma", {"weights": "entmax15"}, "pool.pma.mab.multihead|entmax15"),
    ("rff-pma", {"trained_temperature": True}, "pool.pma.mab.multihead|temperature"),
    ("rff-pma", {"pool_seeds": "max"}, "pool.pma|seeds"),
    ("isab3-max", {"norm": "set"}, "encoder.0|SetNorm"),
    ("isab3-max", {"norm": "layer"}, "encoder.0|LayerNorm"),
    ("isab3-max", {"form": "paper"}, 'encoder.1.reads|form "paper"'),
    ("pointnet", {}, "pointnet"),
]
MISTAKES += [(partial(pointset.create_model, "isab16-pma", **options), words) for options, words in OPTIONS]
MISTAKES += [(partial(pointset.create_model, name), words) for name, words in NAMES]
MISTAKES += [(partial(find_critical, name), f"{name} does not pool by max") for name in ("rff-mean", "pointnet")]
MISTAKES += [(partial(look_into, name), f"{name} has no attention maps: |isab") for name in ("rff-max", "pointnet")]
MISTAKES += [(partial(weigh_classes, given), "must be balanced") for given in ("even", "z=2", "x=-1", "x", "x=2,")]
MISTAKES += [(partial(pointset.Recipe, **options), words) for options, words in RECIPES]
MISTAKES += [(partial(replace, TRIANGLE, **arrays), words) for arrays, words in MESHES]
MISTAKES += [(partial(compare_models, {}, level), "level must be in") for level in (0.0, 1.0, -1.0, math.nan)]
MISTAKES += [(partial(checked_points, Classifier(3), *given), words) for *given, words in POINTS_AND_MASKS]
MISTAKES += [(partial(CENTRED.predict, given), words) for given, words in CLOUDS]
MISTAKES += [(partial(as_javascript, name, options), words) for name, options, words in IN_JAVASCRIPT]


@pytest.mark.parametrize(("mistake", "words"), MISTAKES, ids=[words[:60] for _, words in MISTAKES])
def test_a_mistake_is_told_in_one_sentence_with_names_and_values(mistake, words):
    with pytest.raises(PointsetError) as told:
        mistake()
    assert "\n" not in str(told.value)
    assert [word for word in words.split("|") if word not in str(told.value)] == []


def test_a_masked_array_is_not_taken_for_numbers():
    model = pointset.create_model("rff-max", classes=2, dim=8)
    clouds = np.ma.masked_less(np.arange(24.0).reshape(2, 4, 3), 5)
    with pytest.raises(PointsetError, match="has masked entries, which have no value: leave those points out"):
        model(clouds)
    assert model(np.ma.masked_less(np.ones((2, 4, 3)), 0)).shape == (2, 2)
