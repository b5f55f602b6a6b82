"""Numbers of shapes: volume, area and moments of inertia of watertight meshes, by kernel ridge regression and networks.

python scripts/experiments/regression.py path/to/modelnet9_obj path/to/labeled_db    # writes results/regression/
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import trimesh
from saved import study_table, write_study
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

import pointset
from pointset.data.catalogue.folders import list_folder
from pointset.data.readers.reading import read_mesh
from pointset.data.sampling import sample_points

TARGETS = ("area", "volume", "inertia 1", "inertia 2", "inertia 3")
POINTS, FOLDS = 1024, 5
NETWORK: dict[str, Any] = {
    "points": 256,
    "dim": 64,
    "dropout": 0.0,
    "head_norm": "batch",
    "epochs": 20,
    "least_steps": 300,
    "train_points": (64, 256),
    "optimizer": "muon",
    "learning_rate": 5e-3,
    "weight_decay": 0.05,
    "augment": ("jitter",),
    "normalize": "center-standardize",
    "random_state": 0,
    "validation": 0.2,
}
app = cyclopts.App(name="regression.py", help=__doc__, result_action="return_value")
Predict = Callable[[list[np.ndarray], np.ndarray, list[np.ndarray]], tuple[np.ndarray, np.ndarray | None]]


def forest(train: list[np.ndarray], truth: np.ndarray, test: list[np.ndarray]) -> tuple[np.ndarray, None]:
    """Extents, deviations along the principal axes and the size, in logs, and a random forest."""

    def rows(clouds: list[np.ndarray]) -> np.ndarray:
        axes = [np.linalg.eigvalsh(np.cov(cloud.T)).clip(1e-12) for cloud in clouds]
        extents = [np.log(np.ptp(cloud, axis=0)) for cloud in clouds]
        return np.hstack([extents, np.log(axes) / 2, np.log([[cloud.std()] for cloud in clouds])])

    model = TransformedTargetRegressor(RandomForestRegressor(300, random_state=0), func=np.log, inverse_func=np.exp)
    return model.fit(rows(train), truth).predict(rows(test)), None


def ours(model: str, *, sized: bool = True, **options: Any) -> Predict:
    """A `PointSetRegressor`; without the size, every cloud has the same."""

    def predict(
        train: list[np.ndarray], truth: np.ndarray, test: list[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray | None]:
        if not sized:
            train, test = ([cloud / (cloud - cloud.mean(axis=0)).std() for cloud in some] for some in (train, test))
        numbers = pointset.PointSetRegressor(model, **options).fit(train, truth).predict_interval(test)
        return numbers.values, np.stack([numbers.low, numbers.high])

    return predict


MODELS: dict[str, Predict] = {
    "extents and a forest": forest,
    "features+surface-ridge without the size": ours("features+surface-ridge", sized=False),
    "features-ridge": ours("features-ridge"),
    "surface-ridge": ours("surface-ridge"),
    "features+surface-ridge (default)": ours("features+surface-ridge"),
    "features+surface+embedding-ridge": ours("features+surface+embedding-ridge"),
    "rff-max": ours("rff-max", **NETWORK),
    "isab16-pma": ours("isab16-pma", **NETWORK),
    "isab16-pma, gaussian": ours("isab16-pma", loss="gaussian", **NETWORK),
}


def load(folder: Path, split: str) -> tuple[list[str], list[np.ndarray], np.ndarray]:
    """Names, clouds with Z up and true numbers of the watertight meshes of a split."""
    names, clouds, truth = [], [], []
    for shape in list_folder(folder, split).shapes:
        mesh = read_mesh(shape.path)
        solid = trimesh.Trimesh(mesh.vertices, mesh.faces)
        if solid.is_watertight and solid.volume > 0:
            cloud = sample_points(mesh, POINTS, seed=0)
            names.append(shape.name)
            clouds.append(cloud[:, [0, 2, 1]] * [1, -1, 1] if shape.path.suffix == ".obj" else cloud)
            truth.append([solid.area, solid.volume, *np.sort(solid.principal_inertia_components)])
    return names, clouds, np.array(truth)


@app.default
def regression(*folders: Path) -> None:
    """Judge all models on folders of meshes, and keep the errors and their tables for the results page."""
    rows = list[dict[str, Any]]()
    for folder in folders:
        (names, clouds, truth), (test_names, test, test_truth) = (load(folder, split) for split in ("train", "test"))
        print(f"{folder.name}: {len(names)} and {len(test_names)} watertight shapes", flush=True)
        for name, predict in MODELS.items():
            began = time.process_time()
            values, ends = np.zeros_like(truth), np.full((2, *truth.shape), np.nan)
            for inside, outside in KFold(FOLDS, shuffle=True, random_state=0).split(truth):
                answer = predict([clouds[row] for row in inside], truth[inside], [clouds[row] for row in outside])
                values[outside] = answer[0]
                ends[:, outside] = np.nan if answer[1] is None else answer[1]
            of_test = predict(clouds, truth, test)
            last = np.full((2, *test_truth.shape), np.nan) if of_test[1] is None else of_test[1]
            for split, true, value, (low, high) in (
                ("train", truth, values, ends),
                ("test", test_truth, of_test[0], last),
            ):
                rows += measured({"data": folder.name, "model": name, "split": split}, true, value, low, high)
            print(f"{name}: {time.process_time() - began:.0f} s", _cells(rows, folder.name, name), flush=True)
    write_study("regression", rows, [table(rows, data) for data in dict.fromkeys(row["data"] for row in rows)])


def measured(
    about: dict[str, str], true: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray
) -> list[dict]:
    """Rows of R2, relative error and coverage, one for each target, from arrays [shapes, targets]."""
    r2 = 1 - np.square(true - value).sum(axis=0) / np.square(true - true.mean(axis=0)).sum(axis=0)
    error = np.abs(true - value).mean(axis=0) / true.mean(axis=0)
    inside = np.where(np.isfinite(low).all(axis=0), ((low <= true) & (true <= high)).mean(axis=0), np.nan)
    columns = zip(TARGETS, r2, error, inside, strict=True)
    return [
        {**about, "shapes": len(true), "target": target, "R2": f"{a:.4f}", "error": f"{b:.4f}", "inside": f"{c:.4f}"}
        for target, a, b, c in columns
    ]


def table(rows: Sequence[dict[str, Any]], data: str) -> str:
    """The models on one folder."""
    counts = {row["split"]: row["shapes"] for row in rows if row["data"] == data}
    heads = [f"{data}, {counts['train']} + {counts['test']} shapes"]
    heads += [f"{split} {what}" for split in ("folds:", "test:") for what in ("R2", "error %", "inside %")]
    return study_table([[model, *_cells(rows, data, model)] for model in MODELS], heads)


def _cells(rows: Sequence[dict], data: str, model: str) -> list[str]:
    cells = []
    for split in ("train", "test"):
        own = [row for row in rows if (row["data"], row["model"], row["split"]) == (data, model, split)]
        r2, error, inside = (np.mean([float(row[key]) for row in own]) for key in ("R2", "error", "inside"))
        cells += [f"{r2:.3f}", f"{100 * error:.1f}", "" if np.isnan(inside) else f"{100 * inside:.0f}"]
    return cells


if __name__ == "__main__":
    app()
