"""What a published accuracy is made of: the same weights under the usual ways to raise the figure.

python scripts/experiments/audit.py runs/minutes_100/runs/*      # runs of one model; draws figures/audit.svg

Every step is measured on top of the steps before it, from the same weights: the points of a test set are spread by
farthest-point order in place of a random draw; predictions are averaged over ten such sets (votes); of several runs the
best is reported. Two steps cannot be measured from finished weights, and are listed with what is known about them:
choosing the epoch on the test set, and normals. For what others publish, see published.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from cyclopts import App
from jaxtyping import Bool
from numpy import ndarray
from saved import run, study_table
from torch import nn

import pointset
from pointset.comparison.statistics import Interval, Spread, estimate_mean
from pointset.data.arrays import from_arrays
from pointset.data.dataset import load_like
from pointset.data.point_sets import PointSets
from pointset.data.sampling import downsample, seed_for
from pointset.errors import PointsetError
from pointset.evaluation.predictions import predict_sets
from pointset.viz.charts import label_axes, make_panels
from pointset.viz.color import COLORS, FAINT, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VOTES = 10
app = App(name="audit.py", help=__doc__, help_format="plaintext")
KNOWN = {
    "best epoch on the test set": "not in the weights: 0.5 points in the log of DuMLP-Pin",
    "normals": "not in these runs: train with --features normals",
}


@dataclass(frozen=True)
class Step:
    """One step of an audit."""

    name: str
    accuracy: float | None
    """Accuracy with this step and all before it, mean over runs; None if it cannot be measured from weights."""
    gain: float | None = None
    """Difference from the step before."""
    interval: Interval | None = None
    """95 % interval of the gain for new test shapes and, with several runs, new seeds."""
    note: str = ""


def audit(models: Sequence[nn.Module], sets: PointSets, whole: PointSets) -> list[Step]:
    """Measure the steps for the runs of one model, in order, beginning with the plain accuracy.

    `models` are trained classifiers, one for each seed, `sets` their test sets of random points, and `whole` the same
    shapes with all their points.
    """
    if not models:
        raise PointsetError("an audit needs at least one run, got 0")
    if sets.names != whole.names or whole.options.features:
        raise PointsetError("an audit needs the coordinates of the same test shapes, with all their points")
    spread = [_spread_sets(whole, sets.size, vote) for vote in range(VOTES)]
    plain = _right(models, [sets])
    farthest, voted = _right(models, spread[:1]), _right(models, spread)
    best = int(voted.mean(axis=1).argmax())
    steps = [
        Step("last epoch, random points", float(plain.mean())),
        Step("best epoch on the test set", None, note=KNOWN["best epoch on the test set"]),
        _step("farthest-point order", plain, farthest),
        _step(f"{VOTES} votes", farthest, voted),
    ]
    if len(models) > 1:
        gain = float(voted[best].mean() - voted.mean())
        steps.append(Step(f"best of {len(models)} seeds", float(voted[best].mean()), gain))
    return [*steps, Step("normals", None, note=KNOWN["normals"])]


def _spread_sets(whole: PointSets, size: int, vote: int) -> PointSets:
    """Test sets of farthest points, from another start in each vote."""
    clouds = []
    for index, name in enumerate(whole.names):
        points = whole[index][0].numpy()
        kept = downsample(points, min(size, len(points)), seed=seed_for(vote, name), sampler="fps")
        clouds.append(points[kept])
    how: Any = {"normalize": whole.options.normalize, "names": whole.names, "split": "test", "up": whole.up}
    return from_arrays(clouds, whole.labels, whole.classes, **how)


def _right(models: Sequence[nn.Module], votes: Sequence[PointSets]) -> Bool[ndarray, "models shapes"]:
    """Which shapes each model gets right by the mean of its probabilities over the votes."""
    labels = votes[0].labels.numpy()
    means = [np.mean([predict_sets(model, sets).probabilities for sets in votes], axis=0) for model in models]
    return np.stack([mean.argmax(axis=1) == labels for mean in means])


def _step(name: str, before: ndarray, after: ndarray) -> Step:
    apart = Spread.of(after.astype(float) - before, fixed=len(after) == 1)
    gained = estimate_mean(apart)
    return Step(name, float(after.mean()), gained.value, gained.interval())


def draw_steps(steps: Sequence[Step]) -> "Figure":
    """The plain accuracy as a dot, and bars for what each step adds to it, with its 95 % interval."""
    figure, (axes,) = make_panels(1, 1, 0.4 * len(steps) + 0.5)
    reached = 0.0
    for place, step in enumerate(steps):
        if step.accuracy is None:
            axes.text(100 * reached, place, f"  {step.note}", fontsize=6.5, color=FAINT, va="center")
            continue
        if step.gain is None:  # a bar would begin left of the axis
            axes.plot(100 * step.accuracy, place, "o", color=COLORS[0], ms=6)
        else:
            color = COLORS[2] if step.gain >= 0 else COLORS[1]
            axes.barh(place, 100 * (step.accuracy - reached), 0.6, left=100 * reached, color=color)
        if step.interval is not None:
            ends = [100 * (reached + end) for end in (step.interval.low, step.interval.high)]
            axes.plot(ends, [place, place], color=INK, lw=1)
        right = max(step.accuracy, reached, reached + (step.interval.high if step.interval else 0.0))
        axes.text(100 * right, place, f"  {100 * step.accuracy:.1f}", fontsize=8, va="center")
        reached = step.accuracy
    low = min(step.accuracy for step in steps if step.accuracy is not None)
    axes.set_xlim(100 * max(0.0, low - 0.02), 100 * (reached + 0.04))
    axes.set_ylim(-0.6, len(steps) - 0.4)
    label_axes(axes, "accuracy %", "")
    axes.set_yticks(range(len(steps)), [step.name for step in steps])
    axes.invert_yaxis()
    return figure


@app.default
def main(*runs: Path, data: str | None = None, output: Path = Path(__file__).parent / "figures" / "audit.svg") -> None:
    """Measure the steps for finished runs of one model with different seeds, print their table and draw it."""
    trained = [pointset.load_run(folder) for folder in runs]
    descriptions = [description["data"] for _, description in trained]
    keys = ("classes", "points", "normalize", "features")
    if any(other.get(key) != descriptions[0].get(key) for other in descriptions for key in keys):
        raise PointsetError("the runs differ in their data: give runs of one model that differ only in their seeds")
    sets = load_like(descriptions[0], "test", data)
    whole = load_like(descriptions[0], "test", data, points=int(sets.source_pool.sizes.min()))
    steps = audit([model for model, _ in trained], sets, whole)
    pointset.viz.save(draw_steps(steps), output)
    print(study_table([_cells(step) for step in steps], ["step", "accuracy %", "gain", "95 % interval"]))


def _cells(step: Step) -> list[str]:
    interval = step.interval
    between = step.note if interval is None else f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}"
    accuracy = "" if step.accuracy is None else f"{100 * step.accuracy:.1f}"
    return [step.name, accuracy, "" if step.gain is None else f"{100 * step.gain:+.1f}", between]


if __name__ == "__main__":
    run(app)
