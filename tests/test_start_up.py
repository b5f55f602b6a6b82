"""Imports that a process must avoid until it needs them, because each delays every command and worker by seconds."""

import json
import subprocess
import sys

import pytest

SLOW = ("open3d", "plotly", "trimesh", "torch_geometric", "matplotlib", "pandas", "scipy", "sklearn", "torch._dynamo")
HEAVY = (*SLOW, "h5py", "joblib")
TRAINING = """import pointset
pairs = [[[0.0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]]]
sets = pointset.from_arrays(pairs * 4, [0, 1] * 4)
for optimizer in ("adam", "adamw", "sgd", "muon"):
    model = pointset.create_model("rff-max", classes=2, dim=16)
    pointset.fit(model, sets, pointset.Recipe(epochs=2, optimizer=optimizer), progress=False)
    pointset.evaluate(model, sets).summary()"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import pointset, pointset.data, pointset.cli", (*HEAVY, "torch")),
        ("import pointset; pointset.viz, pointset.data.read_mesh, pointset.tasks, pointset.nn", HEAVY),
        ("import pointset; pointset.load_dataset, pointset.create_model", HEAVY),
        ("from pointset.data import read_mesh, Mesh, MeshError, sample_points, load_dataset, list_cards", HEAVY),
        ("import pointset.comparison.comparing, pointset.tasks.experiments, pointset.tasks", SLOW),
        (TRAINING, SLOW),
    ],
)
def test_a_process_loads_nothing_slow_before_it_needs_it(program: str, absent: tuple[str, ...]) -> None:
    """Each would delay every command and worker by seconds."""
    code = f"{program}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = json.loads(done.stdout)
    assert "pointset" in loaded
    assert not set(absent) & set(loaded)
