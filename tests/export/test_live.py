"""Models in JavaScript: logits and maps equal Python's, or the unsupported part is named."""

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import pointset
from pointset.data.normalize import normalize_points
from pointset.data.options import Preparation
from pointset.errors import PointsetError
from pointset.export.live.description import as_float16, describe_model
from pointset.export.live.page import WEB
from pointset.nn import registry
from pointset.zoo.predicting import predict, prepared_batches

ENCODERS = ("none", "rff", "sab", "isab3", "dumlp3")
POOLINGS = ("max", "mean", "sum", "max+mean", "pma", "pma2", "dumlp3", "max+pma2", "mean+dumlp3")
OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("rff-max", {"local_features": "upright"}),
    ("isab3-pma", {"local_features": "invariant"}),
    *(("isab3-pma2", {"norm": "batch", "prenorm": prenorm}) for prenorm in (False, True)),
    *((name, {"norm": norm}) for name in ("rff-max", "dumlp3-dumlp3") for norm in ("none", "batch")),
    ("isab3-pma", {"scale": "head", "temperature": 0.3}),
    ("rff-pma2", {"weights": ("softmax", "sparsemax"), "temperature": 0.1}),
    ("rff-pma", {"decoder": "rff", "temperature": 1e-5}),  # exp(logit) overflows
    ("rff-max", {"norm": "batch", "head_dim": 5, "head_norm": "batch"}),
    ("isab3-pma", {"heads": 1, "inputs": 6}),
]
CASES = [(f"{encoder}-max", {}) for encoder in ENCODERS] + [(f"isab3-{pooling}", {}) for pooling in POOLINGS] + OPTIONS
SIZES = (1, 2, 23)
ANSWERS = """given.map(({ described, clouds }) => {
  const model = new Model(described);
  return clouds.map((cloud) => {
    const maps = [], logits = [...model.logits(new Float32Array(cloud.flat()), maps)];
    return { logits, maps: maps.map((map) => ({ ...map, weights: [...map.weights] })) };
  });
})"""


def model_of(name: str, options: dict[str, Any]) -> nn.Module:
    """A model in which every parameter has an effect, with weights rounded as in the page."""
    given = {"dim": 8, "heads": 2, "layers": 2, **options}
    model = pointset.create_model(name, classes=4, seed=1, **given).eval()
    generator = torch.Generator().manual_seed(0)
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point():
            noise = torch.rand(tensor.shape, generator=generator)
            tensor += noise - 0.99 if key.endswith("running_var") else 0.4 * noise - 0.2  # not far above epsilon
            tensor.copy_(torch.from_numpy(as_float16(tensor).astype("float32")))
    return model


@pytest.fixture(scope="module")
def answers(in_node: Callable[..., Any]) -> list[Any]:
    """For each case, the model, its clouds, and the results of JavaScript."""
    generator = torch.Generator().manual_seed(3)
    models = [model_of(name, options) for name, options in CASES]
    clouds = [[torch.randn(n, model.inputs, generator=generator) for n in SIZES] for model in models]
    cases = [
        {"described": describe_model(model), "clouds": [cloud.tolist() for cloud in own]}
        for model, own in zip(models, clouds, strict=True)
    ]
    found = in_node(WEB / "modules.mjs", ANSWERS, cases)
    return list(zip(models, clouds, found, strict=True))


def check_near(found: Any, expected: torch.Tensor) -> None:
    given = torch.tensor(found).reshape(expected.shape)
    assert float((given - expected).abs().max()) <= 1e-4 * float(expected.abs().max())


def test_all_numbers_of_16_bits_are_read(in_node: Callable[..., Any]) -> None:
    halves = np.arange(2**16, dtype=np.uint16)
    halves = halves[np.isfinite(halves.view(np.float16))]
    found = in_node(WEB / "tensors.mjs", "[...fromHalf(new Uint16Array(given))]", halves.tolist())
    np.testing.assert_array_equal(found, halves.view(np.float16).astype(np.float64))


@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{name} {options}" for name, options in CASES])
def test_logits_and_maps_are_those_of_python(answers: list[Any], number: int) -> None:
    model, clouds, found = answers[number]
    model = copy.deepcopy(model).double()  # two points lie on a line, where rounding to float32 is up to 5e-4
    for cloud, answer in zip([cloud.double() for cloud in clouds], found, strict=True):
        with torch.no_grad():
            check_near(answer["logits"], model(cloud)[0])
        try:
            maps = pointset.attention_maps(model, cloud)
        except PointsetError:  # a model without attention
            maps = []
        assert len(answer["maps"]) == len(maps)
        for one, expected in zip(answer["maps"], maps, strict=True):
            assert [one["layer"], one["kind"]] == [expected.layer, expected.kind]
            assert [one["heads"], one["queries"], one["keys"]] == list(expected.weights.shape)
            check_near(one["weights"], expected.weights)


ASKED = """await import(given.questions).then(({ Question, ask, probabilities }) => {
  const model = new Model(given.described), question = new Question(Float64Array.from(given.cloud.flat()), 1);
  Object.assign(question.how, { drop: 0.25, turn: 90 });
  const left = question.left(), maps = [], logits = ask(model, question.posed(), left, maps);
  const { classes, up } = model, selected = [...maps.at(-1).weights];
  return { left, selected, probabilities: probabilities(logits), about: [classes, up] };
})"""


def test_a_page_answers_as_python_for_the_points_that_are_left(in_node: Callable[..., Any]) -> None:
    """Of a turned cloud in which every point is there twice; with weights of 32 bits and names in no order."""
    model, cloud = model_of("rff-max", {}), torch.randn(10, 3, generator=torch.Generator().manual_seed(5)).repeat(2, 1)
    with torch.no_grad():
        model.encoder[0].rowwise[0].bias[0] = 70_000.0
        model.encoder[2].rowwise[1].weight[:, 0] = 2.0**-14
    about = [["d", "b", "c", "a"], "y"]
    model.classes = about[0]
    model.temperature = 2.0
    model.preparation = Preparation(up="y", normalize="unit-sphere")
    described = describe_model(model)
    given = {"described": described, "cloud": cloud.tolist(), "questions": (WEB / "questions.mjs").as_uri()}
    found = in_node(WEB / "modules.mjs", ASKED, given)
    assert len(found["left"]) == 15
    assert found["about"] == about
    x, y, z = cloud[found["left"]].T
    points = normalize_points(torch.stack([-y, z, -x], dim=1)[None], "unit-sphere")
    check_near(found["probabilities"], (model(points)[0] / 2).softmax(dim=0).detach())
    twins = [point % 10 for point in found["left"]]  # of two equal points, the first is selected
    selected = torch.tensor([twins.index(twins[most]) for most in model.encode(points)[0].argmax(dim=0)])
    check_near(found["selected"], torch.bincount(selected, minlength=15) / 8)


PROBABILITIES = """await import(given.questions).then(({ probabilities }) => given.cases.map(({ described, cloud }) =>
  probabilities(new Model(described).logits(Float64Array.from(cloud.flat())))))"""


@pytest.mark.slow
def test_a_page_gives_a_shape_the_probabilities_of_classify(in_node: Callable[..., Any]) -> None:
    foreign = torch.rand(1024, 3, generator=torch.Generator().manual_seed(1)) * torch.tensor([0.2, 1.0, 3.0])
    cases, expected = list[Any](), list[Any]()
    for name in ("isab16-pma.modelnet40-1024", "dumlp16-max+dumlp16.modelnet40-1024", "rff-pma4.modelnet40-1024"):
        model = pointset.load_model(name)
        for cloud in (foreign, foreign.square()):
            prediction = predict(model, prepared_batches(model, [cloud.numpy()]))
            expected.append(prediction.probabilities[0])
            points = model.prepare(cloud.numpy()).points[:, :3]
            cases.append({"described": describe_model(model), "cloud": points.tolist()})
    questions = (WEB / "questions.mjs").as_uri()
    found = in_node(WEB / "modules.mjs", PROBABILITIES, {"cases": cases, "questions": questions})
    assert np.array(found) == pytest.approx(np.array(expected), abs=2e-3)


COMPUTED = {"none", "rff", "sab", "isab", "dumlp", "max", "mean", "sum", "max+mean", "pma"}


@pytest.mark.parametrize(
    ("kind", "listed"), [(part.kind, part.listed) for kind in ("encoder", "pooling") for part in registry.entries(kind)]
)
def test_every_other_part_is_refused_by_name(kind: str, listed: str) -> None:
    name = f"{listed}-max" if kind == "encoder" else f"rff-{listed}"
    model = pointset.create_model(name, classes=4, dim=8, heads=2, layers=1)
    if listed.rstrip("0123456789") in COMPUTED:
        describe_model(model)
    else:
        part = listed.split(".")[0].rstrip("0123456789")
        with pytest.raises(PointsetError, match=rf"^(pool is .* \({kind} '{part}|encoder\.0 is of type Equivariant)"):
            describe_model(model)


def test_a_module_of_the_users_own_and_a_pose_that_the_page_does_not_know_are_refused() -> None:
    class Doubled(nn.Linear):
        def forward(self, X: torch.Tensor) -> torch.Tensor:
            return 2 * super().forward(X)

    own, posed = (pointset.create_model("rff-max", classes=4, dim=8) for _ in range(2))
    own.head[-1], posed.preparation = Doubled(8, 4), Preparation(normalize="principal-axes")
    for model, word in ((own, "is the user-defined Doubled, which"), (posed, "page")):
        with pytest.raises(PointsetError, match=word):
            describe_model(model)


def test_weights_have_16_bits_unless_one_is_too_large() -> None:
    assert as_float16(torch.tensor([1.0001, -65504.0])).dtype == "<f2"
    assert as_float16(torch.tensor([1.0, 70000.0])).tolist() == [1.0, 70000.0]
    with pytest.raises(PointsetError, match="finite"):
        as_float16(torch.tensor([float("nan")]))
