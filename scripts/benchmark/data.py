"""Compare the speed of reading OFF files, sampling points and making batches with other libraries.

    .venv/bin/python scripts/benchmark/data.py                                   # on shapes of shapes10
    .venv/bin/python scripts/benchmark/data.py --folders path/to/ModelNet10 path/to/parts

All libraries read the same files in one process with one thread (two for the training step). Their calls are
interleaved, and times are medians over several rounds. The comparison with a library leaves out files that the library
cannot read, or reads with another number of triangles than we do. The table has the number of compared files. The row
"floor" has a lower bound of the time to read a file: reading its bytes and converting them to numbers with numpy, if
their places in the file are known.
"""

import itertools
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import cyclopts
import numpy as np
import torch
from tabulate import tabulate
from timing import interleaved, training_step
from torch import Tensor

from pointset import DataOptions, create_model
from pointset.data import Compose, Jitter, PointCache, PointSets, Scale, make_shape, read_mesh, sample_points, write_off

Task = Callable[[Path], Any]

OURS = "pointset"


class Floor:
    """The lower bound of reading: get the bytes of a file, from the cache of the disk, and convert them to numbers."""

    def __init__(self) -> None:
        self.cuts: dict[Path, tuple[int, int]] = {}

    def __call__(self, path: Path) -> None:
        """Convert the numbers of the vertices to float64 and those of the faces to int64."""
        start, cut = self.cuts.get(path) or self._cut(path)
        content = path.read_bytes()
        np.fromstring(content[start:cut], np.float64, sep=" ")
        np.fromstring(content[cut:], np.int64, sep=" ")

    def _cut(self, path: Path) -> tuple[int, int]:
        """Find where the vertices begin and end in the file. This is done once and not timed."""
        content, vertices = path.read_bytes(), len(read_mesh(path).vertices)
        head = re.match(rb"OFF\s*\d+\s+\d+\s+\d+\s*", content)
        assert head, path
        start = head.end()
        ends = np.flatnonzero(np.frombuffer(content[start:], np.uint8) == ord("\n"))
        self.cuts[path] = (start, start + int(ends[vertices - 1]) + 1)
        return self.cuts[path]


def readers() -> dict[str, Task]:
    """Functions that read an OFF file and return the number of its triangles, by library."""
    import open3d
    import trimesh
    from torch_geometric.io import read_off

    open3d.utility.set_verbosity_level(open3d.utility.VerbosityLevel.Error)  # it prints a warning for an empty mesh
    return {
        OURS: lambda path: len(read_mesh(path).faces),
        "torch-geometric": lambda path: read_off(str(path)).face.shape[1],
        "trimesh": lambda path: len(trimesh.load_mesh(str(path), process=False).faces),
        "open3d": lambda path: len(open3d.io.read_triangle_mesh(path).triangles),
        "floor": Floor(),
    }


def samplers(points: int) -> dict[str, Task]:
    """Functions that read an OFF file and sample points on its surface, by library."""
    from torch_geometric.io import read_off
    from torch_geometric.transforms import SamplePoints

    sample = SamplePoints(points)
    return {
        OURS: lambda path: sample_points(read_mesh(path), points, seed=0),
        "torch-geometric": lambda path: sample(read_off(str(path))).pos,
    }


def readable(task: Task, ours: Task, files: Sequence[Path]) -> list[Path]:
    """The files that a task can read, with our number of triangles if the task returns it."""
    kept = []
    for path in files:
        try:
            found, expected = task(path), ours(path)
        except Exception:
            continue
        if not isinstance(found, int) or found == expected:
            kept.append(path)
    return kept


def compare(tasks: dict[str, Task], files: Sequence[Path], rounds: int) -> list[tuple[str, ...]]:
    """A line per library: files, its and our milliseconds per file, ratio of the totals, median ratio of the files."""
    lines: list[tuple[str, ...]] = []
    for name in [name for name in tasks if name != OURS]:
        common = readable(tasks[name], tasks[OURS], files)
        if not common:
            lines.append((name, f"0 of {len(files)}", "", "", "", ""))
            continue
        pair = {who: tasks[who] for who in (name, OURS)}
        times = [interleaved({who: partial(task, path) for who, task in pair.items()}, rounds) for path in common]
        theirs, ours = ([medians[who].seconds for medians in times] for who in pair)
        ratios = [slow / fast for slow, fast in zip(theirs, ours, strict=True)]
        lines.append(
            (
                name,
                f"{len(common)} of {len(files)}",
                f"{1e3 * sum(theirs) / len(common):.2f}",
                f"{1e3 * sum(ours) / len(common):.2f}",
                f"{sum(theirs) / sum(ours):.1f}",
                f"{median(ratios):.1f}",
            )
        )
    return lines


def off_files(folder: Path, most: int) -> list[Path]:
    """Up to `most` OFF files, evenly spread over the sorted list."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() == ".off")
    if not files:
        raise SystemExit(f"data.py: {folder} has no OFF file: give a folder that has some, such as ModelNet10")
    step = max(1, len(files) // most)
    return files[::step][:most]


def modelnet40_sized(folder: Path, points: int, cache_points: int) -> PointSets:
    """Sets from a cache of random points on disk, with as many shapes as the training split of ModelNet40.

    The cache has 1.2 GB for 10,000 points per shape.
    """
    shapes, path = 9_843, folder / "points.npy"
    whole = np.lib.format.open_memmap(path, "w+", np.float32, (shapes, cache_points, 3))
    rng = np.random.default_rng(0)
    for row in range(shapes):
        whole[row] = rng.standard_normal((cache_points, 3), dtype=np.float32)
    whole.flush()
    names, classes = [f"shape{row}" for row in range(shapes)], [str(label) for label in range(40)]
    return PointSets(
        PointCache(np.load(path, mmap_mode="r"), names, np.arange(shapes) % 40, classes),
        DataOptions(points=points),
    )


def loading(sets: PointSets, rounds: int) -> tuple[str, ...]:
    """A line with the time to draw and augment a batch of 32 sets, and the time of a training step of rff-max."""
    model = create_model("rff-max", classes=40)
    augment = Compose((Scale(), Jitter()))
    generator = torch.Generator().manual_seed(0)

    def draw() -> Tensor:
        rows = torch.randint(len(sets), (32,), generator=generator)
        points, mask = sets.points_at(sets.draw_indices(rows, generator))
        return augment(points, generator, mask)

    batch = draw()
    works = {"draw": draw, "step": lambda: training_step(model, lambda: model(batch))}
    drawing, step = (times.seconds for times in interleaved(works, 4 * rounds).values())
    cache = f"{len(sets):,} x {sets.point_cache.points.shape[1]:,}"
    return cache, f"{sets.size:,}", f"{1e3 * drawing:.1f}", f"{1e3 * step:.1f}", f"{100 * drawing / step:.1f} %"


def bench(
    *, folders: Sequence[Path] = (), points: int = 10_000, rounds: int = 5, most: int = 60, loading_too: bool = True
) -> None:
    """Print three tables.

    Args:
        folders: folders with OFF files at any depth; default: 60 shapes of shapes10.
        points: number of points to sample per mesh.
        rounds: number of timings, of which the median is printed.
        most: maximum number of files per folder, spread over the sorted list.
        loading_too: measure the making of batches, too; this writes 1.2 GB to a temporary folder.
    """
    torch.set_num_threads(1)
    made = TemporaryDirectory()
    for number, kind in itertools.product(range(0 if folders else 20), ("bench", "lamp", "mug")):
        write_off(Path(made.name) / f"{kind}_{number}.off", make_shape(kind, "train", number))
    for folder in [*map(Path, folders)] or [Path(made.name)]:
        files = off_files(folder, most)
        megabytes = sum(path.stat().st_size for path in files) / 1e6
        print(f"{folder.name}: {len(files)} files, {megabytes:.1f} MB")
        head = ["files", "theirs ms", "ours ms", "ratio of totals", "median ratio"]
        print(tabulate(compare(readers(), files, rounds), ["reading OFF", *head], colalign=["left"] + ["right"] * 5))
        lines = compare(samplers(points), files, rounds)
        print(tabulate(lines, [f"mesh to {points:,} points", *head], colalign=["left"] + ["right"] * 5))
        print()
    if loading_too:
        torch.set_num_threads(2)
        head = ["cached shapes x points", "points", "draw and augment ms", "step of rff-max ms", "share"]
        with TemporaryDirectory() as place:
            lines = [loading(modelnet40_sized(Path(place), 1000, 10_000), rounds)]
        print(tabulate(lines, head, colalign=["right"] * 5))


if __name__ == "__main__":
    app = cyclopts.App(default_parameter=cyclopts.Parameter(consume_multiple=True))
    app.default(bench)
    app()
