"""Time and memory of `model.stream` against the size of the cloud, from a file on the disk.

    .venv/bin/python scripts/benchmark/streams.py
    .venv/bin/python scripts/benchmark/streams.py --model rff-max --sizes 100000 1000000

Each size is measured in a process of its own, which opens an .npy file of float32, normalises it to the unit sphere in
pieces and streams it through an untrained model, as `pointset classify` does, after a warm-up on a small cloud. The
time is that of the fastest of some rounds: whatever else the machine does only adds to it, and much where two threads
wait for each other; beside it stand the median, and the least time that the processor worked, of all threads together.
The memory is the most that was ever resident in that process, Python, torch and the model included, and what was
resident before the cloud was opened. Prints a Markdown table and JSON.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter, process_time

import cyclopts
import numpy as np
from tabulate import tabulate

PIECE = 1_000_000
WARM_UP = 50_000

app = cyclopts.App(default_parameter=cyclopts.Parameter(consume_multiple=True))


@app.default
def bench(
    *,
    model: str = "isab16-pma",
    dim: int = 128,
    sizes: tuple[int, ...] = (100_000, 1_000_000, 10_000_000),
    rounds: int = 3,
    threads: int = 2,
    folder: Path | None = None,
) -> None:
    """Measure every size in a fresh process and print a table.

    Args:
        model: a name of the zoo that streams.
        dim: width of its layers.
        sizes: points.
        rounds: times each size is measured.
        threads: of torch.
        folder: where the clouds are written for a while, 12 bytes a point; a temporary folder when not given.
    """
    rows = []
    with TemporaryDirectory(dir=folder) as place:
        for size in sizes:
            path = Path(place) / f"{size}.npy"
            write_cloud(path, size)
            arguments = [str(path), "--model", model, "--dim", dim, "--rounds", rounds, "--threads", threads]
            command = [sys.executable, __file__, "one", *map(str, arguments)]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            rows.append({"points": size, **json.loads(done.stdout)})
            path.unlink()
    points, seconds = (np.log([row[name] for row in rows]) for name in ("points", "seconds"))
    exponent = float(np.polyfit(points, seconds, 1)[0]) if len(rows) > 1 else np.nan
    shown = [{name: value for name, value in row.items() if name != "rounds"} for row in rows]
    print(tabulate(shown, headers="keys", tablefmt="pipe", floatfmt=".2f", intfmt=","))
    print(f"\nTime grows as n^{exponent:.2f}.\n")
    print(json.dumps({"model": model, "dim": dim, "threads": threads, "exponent": exponent, "sizes": rows}, indent=2))


@app.command
def one(path: Path, *, model: str, dim: int, rounds: int, threads: int) -> None:
    """Measure one file in this process and print JSON."""
    import torch

    from pointset import create_model
    from pointset.data import normalize_chunks, open_scan
    from pointset.zoo.classifiers import PackedClassifier, SetClassifier

    torch.set_num_threads(threads)
    network = create_model(model, dim=dim).eval()
    assert isinstance(network, SetClassifier | PackedClassifier)
    network.stream(np.random.default_rng(1).standard_normal((WARM_UP, 3), dtype=np.float32))
    before = resident_megabytes()
    seconds, busy = [], []
    for _ in range(rounds):
        started, worked = perf_counter(), process_time()
        logits = network.stream(normalize_chunks(open_scan(path), "unit-sphere"))
        seconds.append(perf_counter() - started)
        busy.append(process_time() - worked)
    assert logits.isfinite().all()
    times = {"seconds": min(seconds), "median": median(seconds), "processor": min(busy), "rounds": seconds}
    print(json.dumps({**times, "peak_mb": resident_megabytes(), "before_mb": before}))


def write_cloud(path: Path, size: int) -> None:
    """Save a cloud that is never in memory as a whole: a bumpy sphere, away from the origin."""
    rng = np.random.default_rng(0)
    header = {"descr": "<f4", "fortran_order": False, "shape": (size, 3)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for start in range(0, size, PIECE):
            points = rng.standard_normal((min(PIECE, size - start), 3), dtype=np.float32)
            points /= np.linalg.norm(points, axis=1, keepdims=True)
            points *= 1 + 0.2 * np.sin(7 * points[:, :1])
            file.write((points + np.float32(2)).tobytes())


def resident_megabytes() -> float:
    """The most that was resident in this process so far."""
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


if __name__ == "__main__":
    app()
