"""The golden record: numbers that a change of structure must not change, saved in golden.json.

`python tests/test_golden.py` writes the record anew. Do that only for a change that is meant to change numbers, and
say in the commit which and why.
"""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
import trimesh

import pointset
from pointset.data.readers.meshes import Mesh
from pointset.data.sampling import sample_points
from pointset.data.shapes10.build import make_shape
from pointset.explain.recording import record_maps
from pointset.tasks.max_regression import MaxRegression

RECORD = Path(__file__).with_name("golden.json")
TOLERANCE = 2e-4
"""Relative to the largest number: sums of float32 in another order, through a few steps of training."""

RECIPES = {
    "default": pointset.Recipe(epochs=3),
    "muon": pointset.Recipe(epochs=3, optimizer="muon", learning_rate=5e-3, augment=("stretch", "shift", "jitter")),
    "sizes": pointset.Recipe(epochs=3, train_points=(16, 40)),
    "cutmix": pointset.Recipe(epochs=3, augment=("rotate-up", "cutmix-k"), label_smoothing=0.2, clip_norm=None),
    "sgd": pointset.Recipe(epochs=3, optimizer="sgd", schedule="step", step_every=4, weight_decay=1e-4),
    "validation": pointset.Recipe(epochs=3, validation=0.2, class_weights="balanced"),
}
MODELS = ["rff-max", "rffp-mean", "sab-pma4", "isab16-pma", "dumlp16-max+dumlp16", "none-cov32", "isab8-pswe16"]
SAMPLERS = ["uniform", "fps", "poisson"]
FORMATS = ["off", "obj", "stl", "ply", "glb"]


def shape(kind: str = "chair", number: int = 0) -> Mesh:
    return make_shape(kind, "test", number)


def clouds(shapes: int = 3, points: int = 500) -> np.ndarray:
    meshes = [shape(kind) for kind in ("chair", "lamp", "vase")[:shapes]]
    return np.stack([sample_points(mesh, points, seed=1) for mesh in meshes])


def sums(points: Any) -> list[float]:
    """Numbers that change with any coordinate and with the order of the points."""
    rows = np.asarray(points, np.float64)
    places = np.arange(1, len(rows) + 1)[:, None] / len(rows)
    return [len(rows), *rows.sum(0), *(rows * places).sum(0), float((rows**2).sum())]


def sampled(sampler: str) -> list[float]:
    return sums(sample_points(shape(), 128, seed=3, sampler=sampler))


def read(suffix: str) -> list[float]:
    with TemporaryDirectory() as folder:
        path, mesh = Path(folder) / f"shape.{suffix}", shape("table")
        trimesh.Trimesh(mesh.vertices, mesh.faces, process=False).export(path)
        points = sample_points(pointset.data.read_mesh(path), 64, seed=0)
    # Formats store other digits, and GLB other axes: the sampled points of one and the same surface.
    return [len(points), *np.sort(np.abs(points).mean(0)), *np.sort(np.abs(points).max(0))]


def pretrained(name: str) -> list[float]:
    model_name, _, weights = name.partition(".")
    model = pointset.create_model(model_name, pretrained=weights)
    points = clouds()
    return [
        *torch.from_numpy(model.predict_proba(points)).flatten()[::7].tolist(),
        *np.asarray(model.embed(points)).flatten()[::29].tolist(),
    ]


def untrained(name: str) -> list[float]:
    model = pointset.create_model(name, classes=5, dim=16, seed=2).eval()
    mask = torch.arange(500)[None] < torch.tensor([500, 300, 7])[:, None]
    with torch.no_grad():
        return model(torch.from_numpy(clouds()), mask).flatten().tolist()


def toy_sets() -> pointset.PointSets:
    kinds = ("chair", "lamp", "vase")
    X = np.stack([sample_points(shape(kind, number), 64, seed=number) for number in range(8) for kind in kinds])
    return pointset.from_arrays(X, np.arange(len(X)) % 3, classes=list(kinds))


def history(recipe: str) -> list[float]:
    sets = toy_sets()
    model = pointset.create_model("isab4-pma", classes=3, dim=16, dropout=0.0, seed=1)
    fitted = pointset.fit(model, sets, RECIPES[recipe], seed=4, progress=False)
    losses = [row[key] for row in fitted.history for key in ("loss", "accuracy")]
    return [*losses, *pointset.evaluate(fitted.model, sets).logits.flatten()[:9].tolist()]


def max_regression() -> list[float]:
    task, generator = MaxRegression(), torch.Generator().manual_seed(0)
    model = task.build("SAB + PMA", pointset.ModelOptions(dim=16, dropout=0.0), 0)
    batch = task.draw(8, generator)
    return [float(task.loss(model(batch.X, batch.mask), batch).detach())]


def maps() -> list[float]:
    model = pointset.create_model("isab16-pma", pretrained="modelnet40-1024")
    cloud = clouds(1)[0]
    return [value for seen in record_maps(model, cloud) for value in sums(seen.weights[0])[:4]]


CASES: dict[str, Callable[[], list[float]]] = {
    **{f"sampler {name}": partial(sampled, name) for name in SAMPLERS},
    **{f"format {name}": partial(read, name) for name in FORMATS},
    **{f"pretrained {name}": partial(pretrained, name) for name in pointset.list_pretrained()},
    **{f"model {name}": partial(untrained, name) for name in MODELS},
    **{f"recipe {name}": partial(history, name) for name in RECIPES},
    "task max regression": max_regression,
    "maps isab16-pma": maps,
}


@pytest.mark.filterwarnings("ignore:clouds of fewer than")  # 500 points
@pytest.mark.parametrize("case", CASES)
def test_numbers_are_those_of_the_record(case: str) -> None:
    expected = json.loads(RECORD.read_text(encoding="utf-8"))[case]
    got = CASES[case]()
    assert got == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE * max(map(abs, expected)))


def main() -> None:
    record = {case: [float(f"{number:.8g}") for number in compute()] for case, compute in CASES.items()}
    RECORD.write_text("{\n" + ",\n".join(f'"{key}": {json.dumps(record[key])}' for key in record) + "\n}\n")


if __name__ == "__main__":
    main()
