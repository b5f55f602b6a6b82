"""Exported files: the model's logits for every size, complete metadata, and no file after a failure."""

import copy
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn
from toy import moved, same_weights

import pointset
import pointset.export.model
from pointset.data.normalize import normalize_points
from pointset.data.options import Preparation
from pointset.errors import PointsetError
from pointset.export.formats import FORMATS, format_of, record
from pointset.export.model import export_metadata, export_model
from pointset.nn import registry

pytestmark = pytest.mark.slow

CLASSES = ("ball", "box", "rod", "cone", "torus")
PREPARATION = Preparation(normalize="standardize", points=24, up="z")


def model_of(name: str, **options) -> nn.Module:
    layers = 2 if name.startswith("rff-") else 1
    return pointset.create_model(name, classes=len(CLASSES), **{"dim": 16, "layers": layers, **options}).eval()


def sets_of(sets: int, points: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points, NaN where a mask hides them; the last set is empty."""
    generator = torch.Generator().manual_seed(7 * points + sets)
    X = torch.randn(sets, points, 3, generator=generator)
    mask = torch.rand(sets, points, generator=generator) < 0.6
    mask[-1] = False
    return X.masked_fill(~mask.unsqueeze(-1), torch.nan), mask


SIZES = ((1, 1), (2, 1), (4, 2), (1, 37), (2, 64), (3, 65), (2, 2500))


def differences(path: Path, model: nn.Module, mask: bool) -> dict[tuple[int, int], float]:
    """Differences between a file and its model, by (sets, points)."""
    run, found = format_of(path).open(path), {}
    for sets, points in SIZES:
        X, real = sets_of(sets, points)
        arguments = (X, real) if mask else (X.nan_to_num(),)
        with torch.no_grad():
            found[sets, points] = float((run(*arguments)[0] - model(*arguments)).abs().max())
    return found


@pytest.mark.parametrize(
    ("name", "options", "suffix", "mask"),
    [
        ("rff-aggr.softmax", {}, ".onnx", False),
        ("rff-cov8+asp+top3+fspool", {}, ".onnx", True),  # among them what divides by nothing in a set of one point
        ("isab16-pma", {"dim": 64, "decoder": "rff"}, ".pt2", True),  # wide enough for the absorbed order
        ("rff-pma", {"heads": 2, "weights": ("csoftmax", "sparsemax"), "norm": "group"}, ".onnx", True),
        ("dumlp4-dumlp8", {"norm": "layer", "head_norm": "layer"}, ".pt2", True),
    ],
)
def test_exported_logits_equal_the_models_for_other_sizes_than_the_example(name, options, suffix, mask, tmp_path):
    model, path = model_of(name, **options), tmp_path / f"model{suffix}"
    assert export_model(model, path, mask=mask) < 1e-5
    found = differences(path, model, mask)
    assert max(found.values()) < 3e-6, found
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


pointset.list_models()  # also enters what POINTSET_MODULES names
KINDS = ("encoder", "pooling", "model")
ENCODERS, POOLINGS, WHOLE = ([part.listed for part in registry.entries(kind) if part.module.export] for kind in KINDS)
JOINED = [pooling for pooling in POOLINGS if "+" not in pooling and "." not in pooling]
EVERY_PART = [f"{name}-{'+'.join(JOINED[n :: len(ENCODERS)])}" for n, name in enumerate(ENCODERS)]  # few programs
EVERY_PART += [*(f"rff-{pooling}" for pooling in POOLINGS if "." in pooling), *WHOLE]
RECORDED = [
    *((name, {}) for name in EVERY_PART),
    ("rff-aggr.set2set", {}),
    ("isab4-max+pma2", {}),
    ("isab4-pma3", {"form": "paper", "norm": "set", "prenorm": True, "pool_seeds": "max", "scale": "head"}),
    ("isab70-max", {"norm": "batch", "score": "bilinear", "trained_temperature": True}),
    ("rffp-mean", {"layers": 2, "norm": "batch"}),
    ("rff-pma", {"heads": 2, "score": "additive", "weights": ("csoftmax", "csparsemax"), "coverage": "heads"}),
    ("rff-pma2", {"heads": 2, "weights": ("sparsemax", "entmax15")}),
]


def test_what_is_not_entered_for_export_is_refused_by_name(tmp_path, monkeypatch):
    model = model_of("rff-max")
    monkeypatch.setattr(type(model.pool), "export", False)
    with pytest.raises(PointsetError, match="'max'"):
        export_model(model, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "options"), RECORDED, ids=str)
def test_no_size_becomes_a_constant_of_the_exported_program(name, options):
    """The only constraints on sizes in the exported program are at least one set and one point."""
    model = moved(model_of(name, **options)).float()
    takes_mask = "aggr" not in name  # the shape checks of the tests cannot follow rows that a mask takes out
    program = record(model, 3, mask=takes_mask)
    ranges = program.range_constraints.values()
    assert len(ranges) == 2
    assert all(int(bounds.lower) == 1 and bounds.upper > 10**15 for bounds in ranges)
    run = program.module()
    for sets, points in ((2, 1), (3, 71)):
        X, mask = sets_of(sets, points)
        arguments = (X, mask) if takes_mask else (X.nan_to_num(),)
        with torch.no_grad():
            torch.testing.assert_close(run(*arguments)[0], model(*arguments), rtol=2e-5, atol=2e-5)


@pytest.fixture(scope="module")
def plain() -> nn.Module:
    model = model_of("rff-max", norm="layer")
    model.classes, model.preparation, model.temperature = list(CLASSES), PREPARATION, 0.25
    return model


@pytest.fixture(scope="module")
def files(plain, tmp_path_factory) -> dict[str, Path]:
    """The same model in every format, with a mask."""
    folder = tmp_path_factory.mktemp("files")
    for suffix in FORMATS:
        export_model(plain, folder / f"model{suffix}", mask=True)
    return {suffix: folder / f"model{suffix}" for suffix in FORMATS}


def described(path: Path) -> dict:
    """The description in a file, read as its user reads it."""
    if path.suffix == ".onnx":
        entries = {entry.key: entry.value for entry in onnx.load(path).metadata_props}
        return json.loads(entries["pointset.json"])
    extra = {"pointset.json": ""}
    torch.export.load(path, extra_files=extra)
    return json.loads(extra["pointset.json"])


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_file_says_all_that_its_user_needs(suffix, plain, files):
    model, path = plain, files[suffix]
    said = described(path)
    assert said == json.loads(json.dumps(export_metadata(model, True)))
    assert said["classes"] == list(CLASSES)
    assert said["normalize"].startswith("standardize: subtract the mean of all numbers")
    assert said["up"] == "z is the upward axis of the points"
    assert said["temperature"] == 0.25
    assert said["preparation"] == json.loads(json.dumps(asdict(PREPARATION)))
    assert said["model"]["name"] == "rff-max"
    assert pointset.create_model("rff-max", classes=5, **said["model"]["options"]).spec == model.spec
    assert f"torch {torch.__version__}" in said["made_by"]
    assert str(Path(pointset.__file__).parent).encode() not in path.read_bytes()  # nothing of this machine


def test_onnx_names_its_inputs_and_their_free_sizes(files):
    proto = onnx.load(files[".onnx"])
    onnx.checker.check_model(proto, full_check=True)
    ends = {value.name: value.type.tensor_type.shape.dim for value in (*proto.graph.input, *proto.graph.output)}
    shapes = {name: [size.dim_param or size.dim_value for size in sizes] for name, sizes in ends.items()}
    assert shapes == {
        "points": ["batch", "n", 3],
        "mask": ["batch", "n"],
        "logits": ["batch", 5],
        "probabilities": ["batch", 5],
    }


@pytest.mark.parametrize("suffix", FORMATS)
def test_probabilities_have_the_temperature_of_the_model(suffix, plain, files):
    X, real = sets_of(3, 24)
    logits, probabilities = format_of(files[suffix]).open(files[suffix])(X, real)
    torch.testing.assert_close(probabilities, (logits / 0.25).softmax(dim=1))
    (expected,) = plain.predict_proba(X[:1], real[:1])
    points = normalize_points(X[:1].nan_to_num(), "standardize", real[:1])
    torch.testing.assert_close(format_of(files[suffix]).open(files[suffix])(points, real[:1])[1][0], expected)


ALONE = """
import sys
sys.modules["pointset"] = sys.modules["torch_geometric"] = None  # an import would fail
import json, torch
said = {"pointset.json": ""}
program = torch.export.load(sys.argv[1], extra_files=said)
said = json.loads(said["pointset.json"])
points = torch.arange(21.0).reshape(1, 7, 3) / 10
points = (points - points.mean()) / points.std(correction=0)
print(json.dumps([program.module()(points)[0][0].tolist(), said["classes"]]))
"""


def test_a_program_runs_where_the_package_is_not(tmp_path):
    model = model_of("rff-aggr.softmax")
    model.classes, model.preparation = list(CLASSES), PREPARATION
    export_model(model, tmp_path / "m.pt2")
    command = [sys.executable, "-c", ALONE, tmp_path / "m.pt2"]
    logits, classes = json.loads(subprocess.check_output(command, text=True, cwd=tmp_path, timeout=120))
    points = normalize_points(torch.arange(21.0).reshape(1, 7, 3) / 10, PREPARATION.normalize)
    assert logits == pytest.approx(model(points)[0].tolist(), abs=1e-5)
    assert classes == list(CLASSES)


def test_an_input_of_more_numbers_and_a_module_of_ones_own(tmp_path):
    class Own(nn.Module):
        inputs = 6

        def forward(self, points):
            return points.square().sum(dim=1)

    export_model(Own(), tmp_path / "own.pt2")
    said = described(tmp_path / "own.pt2")
    assert "[batch, n, 6]" in said["points"]
    assert "Own" in said["model"]["class"]
    assert "classes" not in said


class Counts(nn.Module):
    """Computes differently for large sets."""

    def forward(self, points):
        return points.amax(dim=1) if points.shape[1] < 50 else points.mean(dim=1) / int(points.shape[1])


class Looks(nn.Module):
    """Computes differently depending on the content of a set."""

    def forward(self, points):
        return points.sum(dim=1) if points.sum() > 0 else points.amax(dim=1)


@pytest.mark.parametrize(("module", "suffix"), [(Counts, ".pt2"), (Looks, ".onnx")])
def test_a_module_that_looks_at_sizes_or_data_is_refused(module, suffix, tmp_path, capfd):
    with pytest.raises(PointsetError, match=f"{module.__name__} cannot be exported as .*: its computation depends on"):
        export_model(module(), tmp_path / f"m{suffix}")
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_an_operator_without_onnx_translation_is_named(tmp_path):
    class Bessel(nn.Module):
        def forward(self, points):
            return torch.special.bessel_j0(points).sum(dim=1)

    with pytest.raises(PointsetError, match=r"Bessel cannot be exported as ONNX by .*bessel_j0"):
        export_model(Bessel(), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_disagrees_is_not_written(tmp_path):
    """NaN agrees with nothing; an older file stays."""
    path, model = tmp_path / "m.pt2", model_of("rff-max")
    path.write_bytes(b"older")
    model.head[2].weight.data[0, 0] = torch.nan
    with pytest.raises(PointsetError, match=r"m\.pt2 .*rff-max by nan"):
        export_model(model, path)
    assert path.read_bytes() == b"older"
    assert [file.name for file in tmp_path.iterdir()] == ["m.pt2"]


def test_exporting_does_not_change_the_model(tmp_path):
    model = model_of("pointnet").train()
    before = copy.deepcopy(model)
    export_model(model, tmp_path / "m.pt2")
    assert model.training
    assert str(model) == str(before)
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert same_weights(model, before)
