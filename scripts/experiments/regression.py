"""Numbers of shapes: volume, area and moments of inertia of watertight meshes, by kernel ridge regression on rows.

python scripts/experiments/regression.py path/to/modelnet9_obj path/to/labeled_db    # writes results/regression/
"""

import math
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import trimesh
from saved import study_table, write_study
from sklearn.compose import TransformedTargetRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler

import pointset
from pointset.data.catalogue.folders import list_folder
from pointset.data.readers.reading import read_mesh
from pointset.data.sampling import sample_points

TARGETS = ("area", "volume", "inertia 1", "inertia 2", "inertia 3")
WIDTHS = {"features": 465, "surface": 274, "embedding": 896, "size": 1}
"""Columns of each kind of rows; each kind counts the same in the kernel."""
ROWS = (
    "size",
    "features+surface",
    "features+size",
    "surface+size",
    "features+surface+size",
    "features+surface+embedding+size",
)
POINTS, LEVEL = 1024, 0.9
GRID = {"gamma": [0.01, 0.03, 0.1, 0.3, 1.0], "alpha": np.logspace(-5, 0, 6)}
FOLDS = KFold(5, shuffle=True, random_state=0)
app = cyclopts.App(name="regression.py", help=__doc__, result_action="return_value")


def pipeline(rows: str) -> Any:
    """Kernel ridge regression of the logs of positive targets, on rows such as "features+size"."""
    names = rows.split("+")
    each = [(name, make_pipeline(pointset.PointSetEmbedding(name), StandardScaler())) for name in names]
    union = FeatureUnion(each, transformer_weights={name: WIDTHS[name] ** -0.5 for name in names})
    ridge = GridSearchCV(KernelRidge(kernel="rbf"), GRID, cv=5)
    scaled = TransformedTargetRegressor(ridge, transformer=StandardScaler())
    return TransformedTargetRegressor(
        make_pipeline(union, scaled), func=np.log, inverse_func=np.exp, check_inverse=False
    )


def load(folder: Path, split: str) -> tuple[list[np.ndarray], np.ndarray]:
    """Clouds with Z up and true numbers of the watertight meshes of a split."""
    clouds, truth = [], []
    for shape in list_folder(folder, split).shapes:
        mesh = read_mesh(shape.path)
        solid = trimesh.Trimesh(mesh.vertices, mesh.faces)
        if solid.is_watertight and solid.volume > 0:
            cloud = sample_points(mesh, POINTS, seed=0)
            clouds.append(cloud[:, [0, 2, 1]] * [1, -1, 1] if shape.path.suffix == ".obj" else cloud)
            truth.append([solid.area, solid.volume, *np.sort(solid.principal_inertia_components)])
    return clouds, np.array(truth)


@app.default
def regression(*folders: Path) -> None:
    """Judge rows on folders of meshes by 5-fold cross-validation and on their test shapes, and keep the tables."""
    results, tables = list[dict[str, Any]](), []
    for folder in folders:
        (X, y), (X_test, y_test) = load(folder, "train"), load(folder, "test")
        heads, lines = [f"{folder.name}, {len(X)} + {len(X_test)} shapes"], []
        heads += ["folds: R2", "folds: error %", "test: R2", "test: error %", f"test: inside {LEVEL:.0%}"]
        for rows in ROWS:
            folds = cross_val_predict(pipeline(rows), X, y, cv=FOLDS)
            test = pipeline(rows).fit(X, y).predict(X_test)
            reach = np.sort(np.abs(np.log(folds / y)), axis=0)[math.ceil((len(y) + 1) * LEVEL) - 1]
            inside = f"{100 * (np.abs(np.log(test / y_test)) <= reach).mean():.0f}"
            scores = [cell for true, value in ((y, folds), (y_test, test)) for cell in _scores(true, value)]
            lines.append([rows, *scores, inside])
            results.append({"data": folder.name, **dict(zip(["rows", *heads[1:]], lines[-1], strict=True))})
            print(*lines[-1], flush=True)
        tables.append(study_table(lines, heads))
    write_study("regression", results, tables)


def _scores(true: np.ndarray, value: np.ndarray) -> list[str]:
    """R2, and the mean absolute error in per cent of the mean target; means over the targets [shapes, targets]."""
    r2 = 1 - np.square(true - value).sum(axis=0) / np.square(true - true.mean(axis=0)).sum(axis=0)
    error = np.abs(true - value).mean(axis=0) / true.mean(axis=0)
    return [f"{r2.mean():.3f}", f"{100 * error.mean():.1f}"]


if __name__ == "__main__":
    app()
