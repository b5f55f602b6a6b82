"""Messages of public functions for wrong inputs: one short sentence with the type and the shape."""

import math
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from inspect import getdoc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pointset
from pointset import DataOptions, ModelOptions, PointsetError, PointSets, Recipe, data, nn, select_model, viz
from pointset.configuration import AttentionOptions
from pointset.data.augmentations import AUGMENTATIONS, MIXINGS, recipe_augmentations
from pointset.data.catalogue.folders import groups_of
from pointset.data.groups import group_keys
from pointset.data.options import Preparation
from pointset.data.preparation import prepare
from pointset.errors import REPEATED, escaped, one_line, place_in_own_code, quoted
from pointset.evaluation import corrupt
from pointset.evaluation.calibration import reliability
from pointset.explain.faithfulness import check_explanations
from pointset.explain.importance import critical_points, occlusion_influence
from pointset.explain.specialisation import specialisation
from pointset.export.live.description import describe_model
from pointset.export.live.page import make_live_page
from pointset.nn.attention import changed_options
from pointset.viz.rows import as_cloud
from pointset.zoo.classifiers import Classifier, checked_points

MODEL = pointset.create_model("rff-max", classes=3, dim=8)
ATTENDING = pointset.create_model("isab3-pma", classes=3, dim=8)
CENTRED: Any = pointset.create_model("rff-max", classes=3, dim=8)
CENTRED.preparation = Preparation(normalize="unit-sphere")
CLOUD, BATCH = torch.zeros(5, 3), torch.zeros(2, 5, 3)
POINTS = DataOptions(points=4)
SETS = PointSets(data.PointCache(np.ones((3, 5, 3), "f4"), list("xyz"), np.arange(3), list("abc")), POINTS)
TRIANGLE = pointset.data.Mesh(np.eye(3), np.array([[0, 1, 2]]))


class Pair(torch.nn.Linear):
    """A model with two outputs."""

    def __init__(self) -> None:
        super().__init__(3, 3)

    def forward(self, X: torch.Tensor, mask: torch.Tensor | None = None) -> Any:
        return X, mask


def cache(**changes: Any) -> data.PointCache:
    """A cache of three clouds, with some fields replaced."""
    parts = {"points": np.ones((3, 5, 3)), "names": list("xyz"), "labels": np.arange(3), "classes": list("abc")}
    return data.PointCache(**{**parts, **changes})


TWINS = PointSets(cache(labels=np.zeros(3, int)), POINTS)


def weigh(function: Callable[..., Any]) -> Any:
    return nn.Weights(AttentionOptions(heads=2, weights=function))(torch.zeros(3, 2, 4, 6))


def look(points: Any, mask: Any = None) -> Any:
    return pointset.attention_maps(ATTENDING, points, mask)


def find_critical(name: str) -> Any:
    return critical_points(pointset.create_model(name), CLOUD)


def look_into(name: str) -> Any:
    return pointset.attention_maps(pointset.create_model(name), CLOUD)


MISTAKES: list[tuple[Callable[[], Any], str]] = [
    (lambda: pointset.evaluate("rff-max", SETS), "model|'rff-max'|create_model"),
    (lambda: pointset.evaluate(MODEL, BATCH), "data|PointSets|float32 [2, 5, 3]"),
    (lambda: pointset.evaluate(MODEL, SETS.subset([])), "no shape"),
    (lambda: pointset.evaluate(MODEL, SETS, batch_size=0), "batch_size|at least 1|got 0"),
    (lambda: pointset.fit(MODEL, SETS, {"epochs": 1}), "recipe|Recipe|{'epochs': 1}"),
    (lambda: pointset.compare(["rff-max"], "shapes10", recipe=3), "recipe must be of type Recipe, got 3"),
    (lambda: pointset.compare(["rff-max"], "shapes10", recipe={"epoch": 1}), "'epoch'|epochs"),
    (lambda: pointset.fit(Pair(), SETS), "Pair must return a tensor, got tuple"),
    (lambda: pointset.evaluate(Pair(), SETS), "Pair must return a tensor, got tuple"),
    (
        lambda: pointset.data_quality.check_data(SETS),
        "data must be the name of a dataset or a folder, got PointSets: save",
    ),
    (lambda: pointset.attention_maps("isab4-pma", CLOUD), "model|torch module"),
    (lambda: critical_points(MODEL, 5), "points must be an array, a tensor or a list of clouds|file|got int"),
    (lambda: pointset.create_model("rff-max", inputs=0), "inputs|at least 1|got 0"),
    (lambda: pointset.register_pooling("mine")(5), "'mine'|got 5"),
    (lambda: SETS.subset([99]), "indices|99|3"),
    (lambda: SETS.subset(BATCH), "indices|[k]|float32 [2, 5, 3]"),
    (lambda: data.Jitter()(BATCH.numpy(), torch.Generator()), "points|[B, n, 3]|float32 [2, 5, 3]"),
    (lambda: data.augmentation_from_names(("scale", "jiter")), "rotate-any|cutmix-k|'jiter'"),
    (lambda: recipe_augmentations(("cutmix-r", "scale")), "cutmix-r|put it last"),
    (lambda: DataOptions(features=("a", "a")), "features must be different names|a, a"),
    (lambda: DataOptions(features=("a", "normals")), "normals first"),
    (lambda: DataOptions(features="normals"), "features must be a list|got 'normals'"),
    (lambda: PointSets(cache(), DataOptions(points=6), name="x"), "points=6|5 that x holds"),
    (lambda: SETS.split_validation(1.0, 0), "fraction|1.0"),
    (lambda: SETS.split_validation(0.01, 0), "fraction=0.01 of 3 shapes|every class has one shape"),
    (lambda: PointSets(cache(labels=np.arange(1, 4)), POINTS), "'z' has label 3|3 classes"),
    (lambda: pointset.evaluate(pointset.create_model("rff-max", 5, dim=8), SETS), "5 classes and | has 3"),
    (lambda: pointset.create_model("dgcnn", classes=3).embed(torch.rand(2, 30, 3)), "embedding"),
    (lambda: nn.Multihead(3, 3, 10), "dim must be a multiple of heads, got dim=10 and heads=4"),
    (lambda: nn.MAB(3, 3, 12, AttentionOptions(form="paper")), "dim_query=3 must equal dim=12"),
    (lambda: changed_options(nn.SAB, 16, {}), "options must be AttentionOptions, got 16, of type int|as in heads=8"),
    (lambda: nn.PMA(16, head=2), "'head' is not an option of PMA: did you mean heads"),
    (lambda: nn.SAB(16, 16, num_heads=2), "'num_heads' is not an option of SAB: did you mean heads"),
    (
        lambda: nn.ISAB(16, 16, num_inducing_points=4),
        "'num_inducing_points' is not an option of ISAB: did you mean inducing",
    ),
    (lambda: nn.PMA(16, coverage="heads"), "coverage='heads' needs weights with an upper bound"),
    (lambda: nn.SetNorm(8, groups=3), "dim must be a multiple of groups, got dim=8 and groups=3"),
    (
        lambda: weigh(lambda z, mask: z.sum(dim=-1)),
        "'<lambda>' must return weights [3, 2, 4, 6], got float32 [3, 2, 4]",
    ),
    (lambda: weigh(torch.sigmoid), "'sigmoid' must be a function f(logits, mask): sigmoid()"),
    (lambda: reliability(np.zeros((0, 3)), np.zeros(0, int), bins=15), "got 0 and 15"),
    (lambda: corrupt(BATCH, "gausian", 1), "'gausian'|did you mean gaussian|upsampling"),
    (lambda: corrupt(BATCH, "shear", 0), "severity of shear|1, 2, 3, 4 or 5|0"),
    (lambda: corrupt(torch.zeros(9), "shear"), "[B, n, 3]|got float32 [9]"),
    (lambda: corrupt(BATCH.long(), "shear"), "int64"),
    (lambda: pointset.check_symmetry(lambda X, mask: [X]), "tensor|list"),
    (lambda: pointset.check_symmetry(lambda X, mask: X, sizes=(0, 3)), "sizes | got (0, 3)"),
    (lambda: pointset.check_symmetry(lambda X, mask: X.flatten(1)), "from [3, 3] to | one row for each element"),
    (lambda: pointset.explain.inspect_shape(Pair(), CLOUD), "model must be of the zoo|got Pair|attention_maps"),
    (lambda: pointset.check_symmetry(torch.nn.ReLU()), "ReLU |X [3, 1, 3] and a mask [3, 1] (TypeError: |mask=False"),
    (lambda: pointset.check_symmetry(torch.nn.Linear(4, 2), mask=False), "Linear |X [3, 1, 3] alone | dim="),
    (lambda: occlusion_influence(MODEL, CLOUD[:1]), "n at least 2, got float32 [1, 3]"),
    (lambda: occlusion_influence(MODEL, CLOUD, label=3), "label must be in [0, 3), got 3"),
    (lambda: occlusion_influence(MODEL, CLOUD, neighbours=0), "neighbours | 5 points, got 0"),
    (lambda: critical_points(MODEL, CLOUD * math.nan), "must be finite"),
    (lambda: look(torch.zeros(5, 4)), "points must be [n, 3]"),
    (lambda: look(BATCH, torch.tensor([[True] * 5, [False] * 5])), "got an empty one"),
    (lambda: look(CLOUD * math.nan), "must be finite"),
    (lambda: check_explanations(MODEL, []), "0 clouds"),
    (lambda: check_explanations(MODEL, [CLOUD], ["saliency"]), "'saliency'"),
    (lambda: check_explanations(MODEL, [CLOUD], ["attention"]), "attention"),
    (lambda: specialisation(pointset.create_model("sab-max", classes=3, dim=8), TWINS), "must have inducing"),
    (lambda: specialisation(ATTENDING, TWINS, "encoder.7"), "'encoder.7': choose from encoder.0.reads"),
    (lambda: specialisation(ATTENDING, SETS), "no class with two shapes"),
    (lambda: viz.Camera(up="w"), "got 'w'"),
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
    (lambda: make_live_page(pointset.create_model("rff-max", inputs=6)), "needs 6 numbers"),
    (lambda: pointset.fit(MODEL, SETS, seed=-1, run="run"), "seed must be"),
    (lambda: select_model(TWINS, progress=False), "1 class"),
    (lambda: data.normalize_points(CLOUD, "unit-sphere"), "float32 [5, 3]: for one cloud give points[None]"),
    (lambda: data.normalize_points(BATCH, "unit-sphere", BATCH[:, :4, 0] > 0), "mask must be bool [2, 5]| bool [2, 4]"),
    (lambda: data.normalize_points(BATCH, "sphere"), "unit-sphere, standardize, center-standardize|none|'sphere'"),
    (lambda: data.sample_points(TRIANGLE, 1, seed=-1), "seed |-1"),
    (lambda: data.sample_points(TRIANGLE, 1, seed=0, sampler="even"), "'uniform', 'fps', 'poisson', got 'even'"),
    (lambda: data.downsample(np.zeros((5, 2)), 3, seed=0), "finite numbers [N, 3], got [5, 2]"),
    (lambda: data.downsample(np.zeros((5, 3)), 6, seed=0), "from 1 to 5|got 6"),
    (lambda: data.downsample(np.zeros((5, 3)), 3, seed=0, sampler="poisson"), "'uniform', 'fps'|'poisson'"),
    (lambda: prepare(np.zeros((5, 4)), Preparation()), "[n, 3]"),
    (lambda: prepare(np.zeros((2, 5, 3)), Preparation()), "[n, 3]"),
    (lambda: prepare(np.ones((5, 3)), Preparation()), "no extent"),
    (lambda: prepare(np.zeros((0, 3)), Preparation()), "no point"),
    (lambda: group_keys("(", ["shoe_1.pcd"]), "not a regular expression"),
    (lambda: groups_of("boot", ["s.pcd"], Path(), ["s.pcd"]), "group of 's.pcd'"),
    (lambda: SETS.grouped([0, 1]), "groups must be one for each of the 3 sets, got 2"),
]
OPTIONS = [
    ({"dim": 10}, "multiple of heads, got dim=10 and heads=4"),
    ({"norm": "instance"}, "norm=instance turns a single pooled row into zeros"),
    ({"weights": "sparsmax"}, "no weights function is called 'sparsmax': use softmax, sparsemax, |register_weights"),
    ({"weights": ("softmax", "sparsemax")}, "weights | heads=4, got ('softmax', 'sparsemax')"),
    ({"coverage": "seeds"}, "coverage='seeds' needs weights with an upper bound, got weights=softmax"),
    ({"width": 3}, "'width' is not an option of create_model: did you mean dim? "),
    ({"num_classes": 3}, "did you mean classes? "),
    ({"in_channels": 3}, "did you mean inputs? "),
    ({"inducing": 3, "pretrained": True}, "did you mean the number in a name such as isab32-pma4? "),
    ({"prenorm": True}, "prenorm needs a norm"),
    (
        {"pretrained": "modelnet40-1025"},
        "isab16-pma.modelnet40-1025' is not a run |one of isab16-pma.modelnet40-1024",
    ),
    ({"pretrained": "modelnet40-1024", "dim": 13}, "dim=|, not 13"),
]
NAMES = [
    ("isab16-pam", "did you mean isab16-pma"),
    ("set_transformer", "did you mean isab16-pma? Names are encoder-pooling"),
    ("Deep Sets", "did you mean rff-max?"),
    ("PointNet++", "did you mean pointnet?"),
    ("rff", "did you mean rff-"),
    ("isab16-max+aggr.lstm", "'lstm' is not an aggregation of sets |choose from attentional, |softmax"),
    ("isab16-max+cov257", "cov257 gives 33,153 numbers for each set: give at most cov256"),
    ("isab99999999999-max", "at most 4096"),  # before memory is asked for
]
BLOCKS = [
    (lambda: nn.ISAB(16, 16, inducing=0), "inducing must be a whole number, at least 1, got 0"),
    (lambda: nn.PMA(16, seeds=0), "seeds must be a whole number, at least 1, got 0"),
    (lambda: nn.TopKPool(0), "k must be a whole number, at least 1, got 0"),
    (lambda: nn.MAB(3, -1, 16), "dim_key must be a whole number, at least 1, got -1"),
    (lambda: nn.RepSetPool(0, 16), "k must be a whole number, at least 1, got 0"),
    (lambda: nn.DualMLPPool(4, 3, 0), "dim must be a whole number, at least 1, got 0"),
    (lambda: nn.RFFEncoder(3, 16, layers=0), "layers must be a whole number, at least 1, got 0"),
    (lambda: nn.SAB(3, 16)(BATCH, key_padding_mask=None), "SAB has no key_padding_mask: give mask instead"),
    (lambda: nn.SAB(3, 16)(BATCH.numpy()), "rows must be a floating tensor [B, n, 3]|numpy: give torch.from_numpy"),
    (lambda: nn.SAB(3, 16)(CLOUD), "rows must be a floating tensor [B, n, 3]|for one cloud give rows[None]"),
    (lambda: nn.ISAB(4, 16)(BATCH), "rows must be a floating tensor [B, n, 4], got float32 [2, 5, 3]"),
    (lambda: nn.MAB(3, 4, 16)(BATCH, BATCH), "rows must be a floating tensor [B, n, 4], got float32 [2, 5, 3]"),
    (lambda: nn.MAB(3, 3, 16)(BATCH, BATCH[:, 1:], BATCH[:, :, 0] > 0), "mask must be bool [2, 4]|bool [2, 5]"),
    (lambda: nn.PMA(3, heads=1)(BATCH.long()), "rows must be a floating tensor [B, n, 3], got int64 [2, 5, 3]"),
    (lambda: nn.PMA(3, heads=1)(BATCH, BATCH[:, :, 0]), "mask must be bool [2, 5], True at real |float32 [2, 5]"),
    (lambda: nn.MaxPool()(BATCH, mask=BATCH[:, :, 0].int()), "mask must be bool [2, 5], True at real |int32 [2, 5]"),
    (lambda: nn.FSPool(3)(BATCH, BATCH[0, :, 0] > 0), "mask must be bool [2, 5], True at real points, got bool [5]"),
]
RECIPES = [
    ({"schedule": torch.optim.lr_scheduler.StepLR}, "schedule must be a function of (step, steps) |StepLR"),
    ({"schedule": lambda step: 1.0}, "schedule must be a function of (step, steps) |or one of 'cosine', "),
    ({"augment": "rotate"}, f"augment must be a list of any of {', '.join([*AUGMENTATIONS, *MIXINGS])}, got 'rotate'"),
    ({"patience": 3}, "patience=3 needs a validation split"),
    ({"class_weights": "even"}, "class_weights must be one of 'balanced', got 'even'"),
    ({"train_points": (64, 32)}, "train_points must be a minimum and a maximum number of points, got [64, 32]"),
    ({"last_points": (8, 9)}, "last_points=[8, 9] needs the sizes of the first epoch: set train_points"),
]
MESHES = [
    ({"vertices": np.eye(3)[:, :2]}, "vertices must be numbers [V, 3], got float64 [3, 2]"),
    ({"faces": np.array([[0, 1, 2, 2]])}, "faces must be integers [F, 3], got int64 [1, 4]"),
    ({"faces": np.empty((0, 3), int)}, "at least one face, got 3 vertices and no face"),
    ({"vertices": np.diag([1, np.inf, 1])}, "vertex 1 has a coordinate that is not finite"),
    ({"faces": np.array([[0, 1, 2], [0, 1, 3]])}, "face 1 is [0, 1, 3], but vertices run from 0 to 2"),
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
    ([np.eye(4, 3), "chair"], "cloud 1: chair: the file or folder does not exist"),
    (np.array([[[0.0, 1, 2]], [[0, np.nan, 2]]]), "cloud 1: |not finite"),
    ("chair.off", "cloud 0: chair.off: the file or folder does not exist"),
    (b"chair.off", "or a file, got bytes"),
]
FITS = [
    ({"loss": torch.nn.CrossEntropyLoss}, "loss must be called as loss(logits, labels), |CrossEntropyLoss() is, got "),
    ({"loss": "focal"}, "loss must be called as loss(logits, labels), |got 'focal'"),
    ({"optimizer": "adam"}, "optimizer must be a function of the parameters, |Recipe(optimizer=...), one of 'adamw', "),
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
MISTAKES += BLOCKS
MISTAKES += [(partial(pointset.fit, MODEL, SETS, **given), words) for given, words in FITS]
MISTAKES += [(partial(pointset.create_model, name), words) for name, words in NAMES]
MISTAKES += [(partial(find_critical, name), f"{name} does not pool by max") for name in ("rff-mean", "pointnet")]
MISTAKES += [(partial(look_into, name), f"{name} has no attention maps: |isab") for name in ("rff-max", "pointnet")]
MISTAKES += [(partial(pointset.Recipe, **options), words) for options, words in RECIPES]
MISTAKES += [(partial(replace, TRIANGLE, **arrays), words) for arrays, words in MESHES]
MISTAKES += [(partial(checked_points, Classifier(3), *given), words) for *given, words in POINTS_AND_MASKS]
MISTAKES += [(partial(CENTRED.predict, given), words) for given, words in CLOUDS]
MISTAKES += [
    (partial(describe_model, pointset.create_model(name, classes=4, dim=8, **options)), words)
    for name, options, words in IN_JAVASCRIPT
]


UNKNOWN = [
    (partial(Recipe, lr=1.0), "Recipe has no argument 'lr': use learning_rate"),
    (partial(Recipe, scheduler=1), "Recipe has no argument 'scheduler': use schedule"),
    (partial(Recipe, early_stopping=1), "Recipe has no argument 'early_stopping': use patience"),
    (partial(Recipe, batch=1), "Recipe has no argument 'batch': use batch_size"),
    (partial(Recipe, 10), "Recipe takes epochs by name, as in epochs=10"),
    (partial(ModelOptions, width=8), "ModelOptions has no argument 'width': use dim"),
    (partial(ModelOptions, num_heads=8), "use attention=AttentionOptions(heads=...), a whole number"),
    (partial(pointset.compare, epochs=3), "use recipe=Recipe(epochs=...), a whole number, at least 1"),
    (partial(pointset.compare, n_seeds=3), "compare has no argument 'n_seeds': use seeds"),
    (partial(pointset.PointSetClassifier, epochs=3), "use recipe=Recipe(epochs=...)"),
    (partial(pointset.PointSetClassifier, dim=3), "use options=ModelOptions(dim=...)"),
    (partial(viz.draw_instances, [], heads=1), "draw_instances has no argument 'heads': use head"),
    (partial(viz.draw_maps, None, head=1), "draw_maps has no argument 'head': use heads"),
    (partial(viz.make_page, None, head=1), "make_page has no argument 'head': use heads"),
    (partial(pointset.fit, MODEL, SETS, lr_scheduler=1), "use recipe=Recipe(schedule=...), one of 'cosine'"),
    (partial(pointset.fit, MODEL, SETS, validation=SETS), "use recipe=Recipe(validation=...), in [0, 1)"),
]


@pytest.mark.parametrize(("mistake", "words"), UNKNOWN, ids=[words[:60] for _, words in UNKNOWN])
def test_an_argument_of_another_name_is_answered_with_ours(mistake, words):
    with pytest.raises(TypeError) as told:
        mistake()
    assert words in str(told.value)


@pytest.mark.parametrize(("name", "ours"), [("recipe__lr", "recipe__learning_rate"), ("dim", "options__dim")])
def test_a_parameter_of_another_name_is_answered_with_ours(name, ours):
    with pytest.raises(ValueError, match=f"did you mean {ours}"):
        pointset.PointSetClassifier().set_params(**{name: 3})


@pytest.mark.parametrize("options", [Recipe, ModelOptions, AttentionOptions, DataOptions])
def test_help_has_the_text_of_each_field(options):
    said = getdoc(options)
    assert [field.name for field in fields(options) if f"    {field.name}:\n        " not in said] == []
    assert "Example:" in said


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


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("nothing to say")


LONG = ["x" * 10**6, b"\x1b" * 10**6, nested(10**5), Silent(), np.zeros((99, 99))]
LONG += [{str(n): n for n in range(9999)}, "\x1b]0;owned\x07" * 99, {"deep": nested(50)}]


@pytest.mark.parametrize("value", LONG, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("most", [40, 80, 10**6])
def test_whatever_a_value_is_its_quote_is_short_and_on_one_line(value: object, most: int) -> None:
    found = quoted(value, most)
    assert 0 < len(found) <= min(most, REPEATED) + 2
    assert found.isprintable()


def test_what_is_short_is_shown_as_python_does_and_a_long_path_stays_readable() -> None:
    assert quoted({"a": [1, "a 'b'"]}) == repr({"a": [1, "a 'b'"]})
    path = Path("/folder" * 99)
    assert quoted(path) == repr(str(path))
    assert escaped(f"{path}/\x1b[2J\ud800\u202e") == rf"{path}/\x1b[2J\ud800\u202e"


def test_the_words_of_a_library_are_cut() -> None:
    assert one_line(ValueError("two\n  lines,\x07 é")) == r"two lines,\x07 é"
    assert one_line("ab " * 999, REPEATED) == ("ab " * 99)[: REPEATED - 3] + "..."


def test_an_error_that_was_not_raised_in_ones_own_code_has_no_place() -> None:
    assert place_in_own_code(ValueError("never raised")) == ""


@pytest.mark.parametrize(
    ("module", "name", "hint"),
    [
        (nn, "MaxPooling", r"pointset\.nn has no MaxPooling: did you mean .*pointset\.nn\.MaxPool\b"),
        (pointset, "inspect_shape", r"pointset has no inspect_shape: did you mean pointset\.explain\.inspect_shape\?$"),
        (nn, "load_model", r"pointset\.nn has no load_model: did you mean pointset\.load_model\?$"),
        (pointset, "draw_map", r"pointset has no draw_map: did you mean pointset\.viz\.draw_maps\b"),
        (pointset, "xxxxxx", r"pointset has no xxxxxx$"),
    ],
)
def test_an_unknown_name_of_a_package_is_answered_with_the_nearest(module, name, hint):
    with pytest.raises(AttributeError, match=hint):
        getattr(module, name)
