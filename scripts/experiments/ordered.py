"""Predict the number of legs of stools, three to seven, with the losses for unordered and for ordered classes.

python scripts/experiments/ordered.py          # takes two CPU minutes; writes results/ordered/
"""

from typing import Any

import numpy as np
import pandas as pd
from cyclopts import App
from saved import run, study_table, write_study
from trimesh.creation import cylinder, revolve
from trimesh.util import concatenate

import pointset
from pointset.data import Mesh, sample_points

LEGS = (3, 4, 5, 6, 7)
TRAIN, TEST, POINTS = 40, 100, 256
"""Numbers of training and test shapes per class, and number of points per shape."""
SEEDS = (0, 1, 2)
RECIPE: dict[str, Any] = {"epochs": 40, "learning_rate": 4e-3, "augment": ("rotate-up", "jitter")}
app = App(name="ordered.py", help=__doc__, help_format="plaintext")


def stool(count: int, rng: np.random.Generator) -> np.ndarray:
    """Return points [n, 3] of a random stool with `count` legs; some stools have stretchers between the legs."""
    width, height, top = rng.uniform(0.3, 0.6), rng.uniform(0.3, 0.7), rng.uniform(0.02, 0.08)
    square, splay = bool(rng.integers(2)), float(rng.choice([0.0, 0.12]))
    seat = revolve(np.array([(0, 0), (width / 2, 0), (width / 2, top), (0, top)], float), sections=20)
    seat.apply_translation((0.0, 0.0, height))
    radius = rng.uniform(0.012, 0.04) * (0.6 + 0.4 * width)
    reach = width / 2 - (radius + rng.uniform(0.0, 0.08) * width)
    angles = 2 * np.pi * np.arange(count) / count + 0.3
    tops = reach * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    if count == 4:
        tops = reach * np.array([(-1.0, -1), (1, -1), (1, 1), (-1, 1)])
    spread = 1 + splay * rng.uniform(0.5, 1.5) * height / width
    rods = [((*(place * spread), 0.0), (*place, height), radius) for place in tops]
    if rng.random() < 0.3:
        level = rng.uniform(0.15, 0.5) * height
        ring = [(*(place * (spread + (1 - spread) * level / height)), level) for place in tops]
        rods += [(a, b, 0.6 * radius) for a, b in zip(ring, [*ring[1:], ring[0]], strict=True)]
    sections = 4 if square else 10
    solids = [seat, *(cylinder(thick, segment=np.array((a, b)), sections=sections) for a, b, thick in rods)]
    mesh: Any = concatenate(solids)
    return np.asarray(sample_points(Mesh(mesh.vertices, mesh.faces), POINTS, seed=int(rng.integers(2**31))))


def stools(count: int, seed: int) -> pointset.PointSets:
    """Return `count` stools of each class."""
    rng, labels = np.random.default_rng(seed), np.repeat(np.arange(len(LEGS)), count)
    X = np.stack([stool(LEGS[label], rng) for label in labels])
    return pointset.from_arrays(X, labels, [f"{legs} legs" for legs in LEGS], normalize="center-standardize")


@app.default
def ordered() -> None:
    """Train and test each model with each loss and seed, and write the results."""
    train, test, rows = stools(TRAIN, 0), stools(TEST, 1), list[dict[str, Any]]()
    for name in ("rff-max", "isab16-pma"):
        for how in (None, "soft", "thresholds"):
            for seed in SEEDS:
                model = pointset.create_model(name, classes=len(LEGS), dim=64, seed=seed)
                pointset.fit(model, train, pointset.Recipe(**RECIPE, ordered=how), seed=seed, progress=False)
                result = pointset.evaluate(model, test)
                scores = {"accuracy": result.accuracy, "rank_error": result.rank_error}
                rows.append({"model": name, "classes": how or "unordered", "seed": seed, **scores})
            print(rows[-1], flush=True)
    lines = []
    for names, own in pd.DataFrame(rows).groupby(["model", "classes"], sort=False):
        accuracy, error = 100 * own.accuracy, own.rank_error
        cells = [f"{accuracy.mean():.1f} ± {accuracy.std():.1f}", f"{error.mean():.3f} ± {error.std():.3f}"]
        lines.append([*names, *cells])
    heads = ["model", "classes", "accuracy %", "mean absolute error"]
    write_study("ordered", rows, [study_table(lines, heads, left=2)])


if __name__ == "__main__":
    run(app)
