"""Train the model of a finished run of sparse.toml further at a lower temperature of sparsemax, for a smaller support.

python scripts/experiments/sparse.py runs/sparse/runs/sparse-n1024-seed0 --run runs/sparser

Training from scratch at a low temperature is slow, because few points have a non-zero weight and therefore a gradient.
"""

import sys
from pathlib import Path

import cyclopts
import torch
from saved import run as run_app

from pointset import Recipe, create_model, fit, load_model
from pointset.data import load_like

app = cyclopts.App(name="sparse.py", help=__doc__, result_action="return_value")


@app.default
def train_on(
    trained: Path,
    *,
    run: Path,
    temperature: float = 0.1,
    epochs: int = 16,
    learning_rate: float = 5e-3,
    points: tuple[int, int] | None = None,
) -> None:
    """Train the model of a run further at another temperature, with the recipe of that run."""
    model = load_model(trained)
    description = model.description
    sparser = create_model(model.spec.name, model.classes, model.spec.options, temperature=temperature)
    sparser.load_state_dict(model.state_dict())
    changes = {"epochs": epochs, "learning_rate": learning_rate} | ({"train_points": points} if points else {})
    recipe = Recipe(**description["recipe"] | changes)
    fit(sparser, load_like(description["data"], "train"), recipe, run=run)


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(run_app(app))
