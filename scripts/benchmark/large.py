"""A dataset of many shapes: time, memory and files from the meshes to the first epoch, and how they grow.

    .venv/bin/python scripts/benchmark/large.py --sizes 1000 10000 100000 --folder path/with/room

For each size small meshes are generated, `pointset data build` makes their pools, and a new process opens the dataset
and trains a small `rff-max` for one epoch. Each step is a process of its own, watched from outside, so that its peak of
memory is its own: resident memory, that of its workers included. The time of a step is that of the process, from its
start to its end; what opening, the epoch and the evaluation alone take is told by the process itself.

The last size is built once more by a dask cluster of two workers on this machine. One of them is killed in the middle,
and the pools are compared byte by byte with those that were built without a cluster.

Prints Markdown tables, and JSON with `--out`.
"""

import filecmp
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import reduce
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cyclopts
import psutil  # type: ignore[import-untyped]
from small_meshes import write_meshes
from tabulate import tabulate
from watched import Watched, room, watch

from pointset.runs.atomic import write_json

LINES: dict[str, tuple[tuple[str, ...], str]] = {
    "generating, s": (("generate", "seconds"), ",.1f"),
    "building, s": (("build", "seconds"), ",.1f"),
    "opening, s": (("open", "opening"), ",.2f"),
    "first epoch, s": (("train", "epoch"), ",.1f"),
    "fitting, s": (("train", "fitting"), ",.1f"),
    "evaluation, s": (("train", "evaluation"), ",.2f"),
    "building, peak MB": (("build", "peak_mb"), ",.0f"),
    "opening, peak MB": (("open", "peak_mb"), ",.0f"),
    "training, peak MB": (("train", "peak_mb"), ",.0f"),
    "meshes, MB": (("meshes", "bytes_mb"), ",.1f"),
    "pools, MB": (("cache", "bytes_mb"), ",.1f"),
    "meshes, files": (("meshes", "files"), ",d"),
    "pools, files": (("cache", "files"), ",d"),
    "most files while building": (("build", "most_files"), ",d"),
}
"""Of the table: where a row has the quantity, and how it is written."""
SAID = 8
"""Lines of what a process wrote to stderr that are kept."""
MOST_RUNS = 3
"""Of a build that a killed worker ended."""

app = cyclopts.App(default_parameter=cyclopts.Parameter(consume_multiple=True))


@app.default
def bench(
    *,
    sizes: tuple[int, ...] = (1_000, 10_000, 100_000),
    pool_points: int = 256,
    points: int = 100,
    dim: int = 32,
    cluster_too: bool = True,
    folder: Path | None = None,
    out: Path | None = None,
) -> None:
    """Measure every size, and print tables.

    Args:
        sizes: shapes.
        pool_points: points of a pool.
        points: points of a set in training.
        dim: width of the model.
        cluster_too: build the last size through a dask cluster as well, and kill a worker.
        folder: where all is written for a while, some 20 kB a shape; a temporary folder when not given.
        out: the JSON to write.
    """
    rows: list[dict[str, Any]] = []
    for size in sizes:
        with TemporaryDirectory(dir=folder) as place:
            rows.append(measure(Path(place), size, pool_points, points, dim))
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
            if cluster_too and size == sizes[-1]:
                rows[-1]["cluster"] = measure_cluster(Path(place), pool_points, rows[-1]["build"]["seconds"] / 2)
                print(json.dumps(rows[-1]["cluster"]), file=sys.stderr, flush=True)
    print(table(rows))
    if "cluster" in rows[-1]:
        print("\nthrough dask, a worker killed: " + json.dumps(rows[-1]["cluster"], indent=1))
    if out is not None:
        write_json(out, rows)


def measure(place: Path, size: int, pool_points: int, points: int, dim: int) -> dict[str, Any]:
    """One row: what each step took."""
    shapes, home = place / "shapes", place / "home"
    sets = [str(shapes), "--pool-points", str(pool_points), "--points", str(points)]
    generated = step(place, "generate", str(shapes), "--shapes", str(size))
    built = watch_step(place, home, build_command(shapes, pool_points))
    opened = step(place, "open", *sets)
    trained = step(place, "train", *sets, "--dim", str(dim))
    return {
        "shapes": size,
        "meshes": room(shapes),
        "cache": room(home),
        "generate": generated,
        "build": built,
        "open": opened,
        "train": trained,
    }


def step(place: Path, name: str, *arguments: str) -> dict[str, Any]:
    """A command of this file in a process of its own; what it says is added to what was seen from outside."""
    return watch_step(place, place / "home", [sys.executable, __file__, name, *arguments])


def watch_step(place: Path, home: Path, command: Sequence[str]) -> dict[str, Any]:
    """What a command took, and the JSON in its last line if there is one."""
    done = watch(command, place, {"POINTSET_HOME": str(home)})
    if done.status:
        raise SystemExit(f"{' '.join(command)} ended with {done.status}: {done.errors}")
    return {**_seen(done), **_told(done.output), "said": done.errors.strip().splitlines()[-SAID:]}


def _seen(done: Watched) -> dict[str, Any]:
    return {"seconds": done.seconds, "peak_mb": done.peak_bytes / 1e6, "most_files": done.most_files}


def _told(output: str) -> dict[str, Any]:
    lines = output.strip().splitlines()
    return json.loads(lines[-1]) if lines and lines[-1].startswith("{") else {}


def build_command(shapes: Path, pool_points: int, *options: str) -> list[str]:
    """`pointset data build`, with this interpreter."""
    command = [sys.executable, "-m", "pointset.cli", "data", "build", str(shapes), "--points", str(pool_points)]
    return [*command, *options]


@app.command
def generate(folder: Path, *, shapes: int) -> None:
    """Write meshes."""
    write_meshes(folder, shapes)


@app.command(name="open")
def open_(folder: Path, *, pool_points: int, points: int) -> None:
    """Open the training and the test set, and say how long that took."""
    from pointset.data.dataset import load_sets  # imported before the clock starts
    from pointset.data.options import DataOptions

    started = time.perf_counter()
    sets = load_sets(folder, DataOptions(points=points, pool_points=pool_points))
    print(json.dumps({"opening": time.perf_counter() - started, "opened": sum(map(len, sets))}))


@app.command
def train(folder: Path, *, pool_points: int, points: int, dim: int) -> None:
    """Train one epoch in a folder of its own, evaluate the test set, and say how long each took."""
    import pointset
    from pointset.data.dataset import load_sets
    from pointset.runs.threads import torch_threads

    train, test = load_sets(folder, pointset.DataOptions(points=points, pool_points=pool_points))
    model = pointset.create_model("rff-max", classes=len(train.classes), dim=dim)
    with torch_threads(1):  # beside other work a second thread waits for a core at every product
        started = time.perf_counter()
        fitted = pointset.fit(model, train, pointset.Recipe(epochs=1), run=folder.with_name("run"), progress=False)
        trained = time.perf_counter()
        accuracy = pointset.evaluate(model, test).accuracy
    times = {"fitting": trained - started, "evaluation": time.perf_counter() - trained}
    print(json.dumps({"epoch": fitted.history[0]["seconds"], **times, "accuracy": accuracy}))


def measure_cluster(place: Path, pool_points: int, seconds: float) -> dict[str, Any]:
    """The same build through a cluster, one of whose workers is killed after some seconds."""
    home = place / "home of the cluster"
    command = [sys.executable, __file__, "cluster", str(place / "shapes"), "--pool-points", str(pool_points)]
    found = watch_step(place, home, [*command, "--kill-after", str(seconds)])
    pools = [Path("pools", path.name) for path in (place / "home" / "pools").iterdir() if path.is_dir()]
    files = [pool / path.name for pool in pools for path in (place / "home" / pool).iterdir()]
    alike = [filecmp.cmp(place / "home" / file, home / file, shallow=False) for file in files]
    return {**found, "files": len(files), "alike": sum(alike)}


@app.command
def cluster(shapes: Path, *, pool_points: int, kill_after: float) -> None:
    """Build through a dask cluster of two workers, kill one, and repeat the command until it ends well."""
    from distributed import LocalCluster

    ends: list[dict[str, Any]] = []
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", scheduler_port=0) as started:
        command = build_command(shapes, pool_points, "--backend", "dask", "--scheduler", started.scheduler_address)
        worker = next(iter(started.workers.values())).pid
        killer = threading.Timer(kill_after, os.kill, (worker, signal.SIGKILL))
        killer.start()
        while not ends or ends[-1]["status"]:
            begun = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True)
            said = done.stderr.strip().splitlines()
            ends.append({"status": done.returncode, "seconds": time.perf_counter() - begun, "said": said[-SAID:]})
            if len(ends) == MOST_RUNS:
                break
        killer.cancel()
        print(json.dumps({"runs": ends, "killed": not psutil.pid_exists(worker)}))


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each quantity, a column for each size, and how it grew between the last two."""
    lines = []
    for title, (path, form) in LINES.items():
        values = [reduce(dict.__getitem__, path, row) for row in rows]
        sizes = [row["shapes"] for row in rows]
        grown = [exponent(sizes[-2:], values[-2:])] if len(rows) > 1 else []
        lines.append([title, *(format(value, form) for value in values), *(f"{power:.2f}" for power in grown)])
    head = ["shapes", *(f"{row['shapes']:,}" for row in rows), *["exponent"] * (len(rows) > 1)]
    return tabulate(
        lines, head, tablefmt="pipe", disable_numparse=True, colalign=["left"] + ["right"] * (len(head) - 1)
    )


def exponent(sizes: Sequence[Any], values: Sequence[Any]) -> float:
    """The slope between two points on log axes: 1 is growth in proportion."""
    (few, many), (less, more) = sizes, values
    return math.log(more / less) / math.log(many / few)


if __name__ == "__main__":
    app()
