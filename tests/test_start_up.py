"""Imports that a process must avoid until it needs them, because each delays every command and worker by seconds."""

import subprocess
import sys

import pytest

SLOW = ("torch._dynamo", "sklearn", "scipy", "pandas", "matplotlib", "trimesh", "open3d", "torch_geometric")


def imports(program: str) -> set[str]:
    """The slow packages that a program has imported when it ends."""
    last = f"import sys; print(*set({SLOW!r}) & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", f"{program}\n{last}"], check=True, capture_output=True, text=True)
    return set(done.stdout.split())


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd", "muon"])
def test_training_and_testing_a_model_import_nothing_slow(optimizer):
    program = f"""
import pointset
pairs = [[[0.0, 0, 0], [1, 0, 0]], [[0, 0, 0], [0, 1, 0]]]
sets = pointset.from_arrays(pairs * 4, [0, 1] * 4)
model = pointset.create_model("rff-max", classes=2, dim=16)
pointset.fit(model, sets, pointset.Recipe(epochs=2, optimizer="{optimizer}"), progress=False)
pointset.evaluate(model, sets).summary()
"""
    assert imports(program) == set()


@pytest.mark.slow
def test_a_worker_of_a_comparison_imports_nothing_slow_before_it_trains():
    assert imports("import pointset.comparison.comparing, pointset.tasks.experiments, pointset.tasks") == set()
    assert "matplotlib" in imports("import pointset.comparison.report.sections")  # it would be seen
