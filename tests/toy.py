"""A tiny trained model like those in the package, with its run and its card."""

from pathlib import Path
from typing import Any

import pointset
from pointset.runs import digests
from pointset.training.recipe import Recipe

CARD = """
title = "A toy"
data = "shapes10"
parameters = 1234
multiply_adds = 1
temperature = 2.0
command = "pointset train"
terms = "for nobody"
[unlike]
score = "energy"
threshold = -1000.0
[unlike.auroc]
airplanes = 0.875
[accuracy]
64 = [0.5, 0.4, 0.6]
"""


def ship(name: str, folder: Path, clouds: Path, recipe: Recipe | None = None, **options: Any) -> Any:
    """Train a model with a name such as rff-max.toy on a folder of clouds for an epoch, and write it with its card."""
    sets = pointset.load_dataset(clouds, points=16)
    model = pointset.create_model(name.split(".")[0], classes=len(sets.classes), dim=8, **options)
    pointset.fit(model, sets, recipe or Recipe(epochs=1), run=folder / name, progress=False)
    digests.write_text(folder / name / "card.toml", CARD)
    return model
