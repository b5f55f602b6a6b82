"""What neighbourhoods cost: the numbers of a cloud, a step of training, and `pointset classify` of one file.

python scripts/experiments/speed.py path/to/modelnet40_ply_hdf5 path/to/chair.off    # writes results/speed/

All times are processor seconds of one thread. What is compared runs in turn, and the ratio is the median of the pairs,
so that other work on the machine touches both alike. The same command continues an interrupted run.
"""

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import cyclopts
import numpy as np
import torch
from saved import keep_row, kept_rows, study_table, write_tables
from support import OPTIONS

from pointset.configuration import Neighbourhoods
from pointset.data.dataset import load_dataset
from pointset.data.neighbourhoods import neighbourhood_numbers
from pointset.data.point_sets import PointSets
from pointset.data.preparation import Preparation
from pointset.data.readers.reading import read_mesh
from pointset.data.sampling import sample_points
from pointset.training.loop import fit
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_model

SIZES, LARGE, CLOUDS = (256, 1024, 4096), 100_000, 12_311
MODELS = ("dumlp16-max+dumlp16", "isab16-pma")
KINDS: tuple[Neighbourhoods, ...] = ("none", "oriented")
RECIPE = Recipe(epochs=1, batch_size=64, train_points=(64, 256), optimizer="muon", learning_rate=5e-3)
SHAPES, ROUNDS, CALLS = 512, 9, 5
"""Shapes of an epoch (8 steps), epochs of each kind, and calls of `pointset classify` with each model."""
HEADS = (
    ["numbers of one cloud", "ms", f"core-seconds for {CLOUDS:,}"],
    ["step of 64 sets", "coordinates, ms", "neighbourhoods, ms", "ratio", "least", "most"],
    ["seconds", "coordinates: processor", "on the clock", "neighbourhoods: processor", "on the clock "],
)


def seconds(work: Callable[[], object], rounds: int = 15) -> float:
    """Median processor seconds of a call, after one that is not counted."""
    spent = []
    for _ in range(rounds + 1):
        began = time.process_time()
        work()
        spent.append(time.process_time() - began)
    return median(spent[1:])


def kept(name: str, measure: Callable[[], list[float]], form: str) -> list[str]:
    """A line of a table, measured if results.csv lacks it."""
    if name not in {row["measured"] for row in kept_rows("speed")}:
        keep_row("speed", {"measured": name, "values": " ".join(f"{value:{form}}" for value in measure())})
    values = {row["measured"]: row["values"] for row in kept_rows("speed")}
    return [name, *values[name].split()]


def numbers(points: np.ndarray, thinned: bool = False) -> list[float]:
    """Milliseconds for the numbers of one cloud, of a large one as `Preparation` takes files, and seconds for many."""
    prepare = Preparation(neighbourhoods="oriented", isolated="leave out").prepare
    each = seconds(partial(prepare, points) if thinned else partial(neighbourhood_numbers, points, "oriented"))
    return [1000 * each, CLOUDS * each]


def epoch(name: str, kind: Neighbourhoods, sets: PointSets, run: Path | None = None) -> float:
    """Milliseconds of processor time of a step."""
    network = create_model(name, classes=len(sets.classes), options=replace(OPTIONS, neighbourhoods=kind))
    (row,) = fit(network, sets, RECIPE, run=run, progress=False).history
    return 1000 * float(row["processor_seconds"]) / (SHAPES / RECIPE.batch_size)


def steps(name: str, sets: PointSets) -> list[float]:
    """Milliseconds of a step without and with neighbourhoods, and the median, least and largest ratio of a pair."""
    spent: dict[Neighbourhoods, list[float]] = {kind: [] for kind in KINDS}
    for turn in range(ROUNDS + 1):
        for kind in KINDS if turn % 2 else KINDS[::-1]:
            spent[kind].append(epoch(name, kind, sets))
    plain, known = (spent[kind][1:] for kind in KINDS)
    ratios = sorted(with_them / without for without, with_them in zip(plain, known, strict=True))
    return [median(plain), median(known), median(ratios), ratios[0], ratios[-1]]


def classify(chair: Path, sets: PointSets) -> list[float]:
    """Median processor seconds and least wall-clock seconds of `pointset classify`, without and with neighbourhoods."""
    spent: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            epoch(MODELS[0], kind, sets, Path(folder) / kind)
        for kind in KINDS * CALLS:
            call = [sys.executable, "-m", "pointset.cli", "classify", str(chair), "--model", f"{folder}/{kind}"]
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
            subprocess.run(call, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            after, wall = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter() - began
            spent[kind].append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall))
    calls = [[*zip(*spent[kind], strict=True)] for kind in KINDS]
    return [value for busy, clock in calls for value in (median(busy), min(clock))]


def speed(data: str, chair: Path) -> None:
    """Measure what results.csv lacks, and write the tables."""
    train = load_dataset(data, "train", 1024, normalize="standardize", progress=False)
    sets = train.subset(np.linspace(0, len(train) - 1, SHAPES).astype(int).tolist())
    points = sample_points(read_mesh(chair), LARGE, seed=0).astype(np.float32)
    lines = [
        [
            *(kept(f"{size:,} points", partial(numbers, points[:size]), ".1f") for size in SIZES),
            kept(f"{LARGE:,} points, thinned to 1,024", partial(numbers, points, thinned=True), ".1f"),
        ],
        [kept(name, partial(steps, name, sets), ".3g") for name in MODELS],
        [kept("`pointset classify`", partial(classify, chair, sets), ".2f")],
    ]
    write_tables("speed", [study_table(own, head) for head, own in zip(HEADS, lines, strict=True)])


if __name__ == "__main__":
    torch.set_num_threads(1)
    cyclopts.run(speed)
