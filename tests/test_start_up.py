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


PROGRAMS = {
    "the package and its command line": (
        "import pointset, pointset.data, pointset.cli\n"
        "from pointset.data import read_mesh, Mesh, MeshError, sample_points, list_cards",
        (*HEAVY, "torch"),
    ),
    "lists and verdicts": (
        "import pointset; from pointset.cli import main\n"
        "pointset.judge({'item': [0, 1], 'label': [3, 5], 'prediction': ['3', '4']})\n"
        "main(['zoo', '--pretrained']); main(['zoo', 'rff-pma4.modelnet40-1024'])",
        ("torch",),
    ),
    "every room": ("import pointset\npointset.viz, pointset.tasks, pointset.nn, pointset.create_model", HEAVY),
    "a training, and what a comparison runs": (
        f"import pointset.comparison.comparing, pointset.tasks\n{TRAINING}",
        SLOW,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("program", "absent"), PROGRAMS.values(), ids=PROGRAMS)
def test_a_process_loads_nothing_slow_before_it_needs_it(program: str, absent: tuple[str, ...]) -> None:
    """Each would delay every command and worker by seconds."""
    code = f"{program}\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "pointset" in loaded
    assert not set(absent) & set(loaded)
