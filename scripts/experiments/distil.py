"""Distillation: train a network on the labels and on the predictions of several finished runs (Hinton et al. 2015).

python scripts/experiments/distil.py scripts/experiments/near128.toml isab-shifts128 runs/near/runs/* --run runs/mine

The teachers get the same augmented sets as the student (Beyer et al. 2022, "a good teacher is patient and consistent"),
without noise on the local features. The student is trained on the dataset of the teachers.
"""

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import cyclopts
import torch
from cyclopts import Parameter
from jaxtyping import Float
from saved import run as run_app
from torch import Tensor, nn

from pointset import ModelOptions, Recipe, create_model, load_model
from pointset.comparison import Entry
from pointset.data import PointSets, load_like
from pointset.evaluation import evaluate
from pointset.training.checkpoints import describe_run
from pointset.training.loop import Training
from pointset.training.objectives import Classification, Loss
from pointset.zoo.local_feature_inputs import fit_local_features

SIZES = (64, 100, 256, 1024)
app = cyclopts.App(name="distil.py", help=__doc__, result_action="return_value")


class Distillation(Classification):
    """Loss (1 - share) CE(labels) + share CE(mean probabilities of the teachers), where CE is the cross entropy."""

    def __init__(
        self, train: PointSets, recipe: Recipe, seed: int, teachers: Sequence[nn.Module], share: float
    ) -> None:
        super().__init__(train, recipe, seed)
        self.teachers, self.share = [teacher.eval().requires_grad_(False) for teacher in teachers], share

    def loss(self, output: Float[Tensor, "B classes"], batch: Any) -> Loss:
        """Return the loss for sets of one size; the metrics are computed from the labels."""
        labelled = super().loss(output, batch)
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=self.recipe.precision == "bfloat16"):
            probabilities = [teacher(batch.points, batch.mask).float().softmax(dim=1) for teacher in self.teachers]
        taught = nn.functional.cross_entropy(output, torch.stack(probabilities).mean(dim=0))
        return Loss(torch.lerp(labelled.mean, taught, self.share), labelled.sums)


@app.default
def distil(
    experiment: Path,
    row: str,
    teachers: list[Path],
    /,
    *,
    run: Path,
    share: Annotated[float, Parameter(help="Weight of the teachers in the loss.")] = 0.7,
    epochs: Annotated[int | None, Parameter(help="Number of epochs; default: that of the experiment.")] = None,
    seed: int = 0,
) -> None:
    """Train the model of one row of an experiment with teachers (folders of finished runs), and test it."""
    content = tomllib.loads(experiment.read_text(encoding="utf-8"))
    entry = next(entry for entry in map(Entry.of, content["models"]) if entry.label == row)
    changes: dict[str, Any] = {} if epochs is None else {"epochs": epochs}
    recipe = Recipe.from_dict(content["recipe"] | changes)
    loaded = [(model := load_model(teacher), model.description) for teacher in teachers]
    data = loaded[0][1]["data"]
    train = load_like(data, "train")
    options = entry.options(ModelOptions.from_dict(content["model"]))
    model = create_model(entry.name, classes=len(train.classes), options=options, seed=seed)
    sets = train.with_local_features(options.local_features)
    fit_local_features(model, sets)
    objective = Distillation(sets, recipe, seed, [teacher for teacher, _ in loaded], share)
    taught = {"teachers": [teacher.name for teacher in teachers], "taught_share": share}

    def description() -> dict[str, Any]:
        return describe_run(model, train, recipe, seed) | taught

    fitted = Training(model, objective, recipe, seed).fit(run, description, progress=True)
    for size in SIZES:
        found = evaluate(load_model(run), load_like(data, "test", points=size))
        print(f"{size:,} points: {found.accuracy:.2%}, mean of classes {found.mean_class_accuracy:.2%}")
    print(f"{fitted.work / 60:.1f} CPU minutes")


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(run_app(app))
