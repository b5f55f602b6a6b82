"""Files that runs, comparisons and pools leave: one bit flipped, and the work gone on with.

The truth is the same work on the undamaged copy: a flip must be refused in one sentence, or change no number.
"""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from fuzzing.kinds.folders_made import POINTS, fixture, go_on_comparing, go_on_training, pools_in
from fuzzing.verdicts import Outcome, of_error


@dataclass(frozen=True)
class Files:
    """Files that are flipped alike.

    Attributes:
        name: in a table.
        root: folder below the fixture, which is copied for each flip.
        pattern: of the files, below the root.
        use: goes on with the work in a copy of the fixture's root, and gives the numbers that come of it.
    """

    name: str
    root: str
    pattern: str
    use: Callable[[Path, Path], Any]

    def case(self, random: Random, folder: Path) -> Outcome:
        """Flip one bit of one of the files, and judge what the work makes of it."""
        truth = self.truth()
        root = copied(self.root, folder)
        path = random.choice(sorted(root.glob(self.pattern)))
        content = bytearray(path.read_bytes())
        place, bit = random.randrange(len(content)), random.randrange(8)
        content[place] ^= 1 << bit
        path.write_bytes(content)
        what = f"{path.relative_to(root)}, bit {bit} of byte {place}"
        try:
            found = self.use(root, fixture())
        except Exception as error:
            outcome = of_error(error, root, b"")
            return Outcome(outcome.verdict, f"{what}: {outcome.detail}")
        return Outcome("alike") if same(found, truth) else Outcome("differs", f"{what} changed a number")

    def truth(self) -> Any:
        """The numbers from an undamaged copy."""
        return undamaged(self)


@cache
def undamaged(files: Files) -> Any:
    """See `Files.truth`."""
    with tempfile.TemporaryDirectory(prefix="flips-") as name:
        return files.use(copied(files.root, Path(name)), fixture())


def copied(root: str, folder: Path) -> Path:
    """A copy of a folder of the fixture, with the pools beside it."""
    shutil.copytree(fixture() / "home", folder / "home")
    if root.startswith("home"):
        return folder / root
    return shutil.copytree(fixture() / root, folder / "copy")


def same(found: Any, truth: Any) -> bool:
    """Whether two results, of numbers, arrays and texts in lists and tables, are the same to the last bit."""
    if isinstance(truth, dict):
        return list(found) == list(truth) and all(same(found[key], truth[key]) for key in truth)
    if isinstance(truth, list | tuple):
        return len(found) == len(truth) and all(map(same, found, truth))
    if isinstance(truth, np.ndarray):
        return found.dtype == truth.dtype and found.shape == truth.shape and found.tobytes() == truth.tobytes()
    return bool(found == truth)


def resume(run: Path, folder: Path) -> Any:
    """The training to its end: its weights and its history."""
    with pools_in(run.parent / "home"):
        fitted = go_on_training(run, folder)
    weights = {name: tensor.numpy() for name, tensor in fitted.model.state_dict().items()}
    rows = [{name: value for name, value in row.items() if name != "seconds"} for row in fitted.history]
    return {"weights": weights, "history": rows, "best": fitted.best_epoch}


def evaluate(run: Path, folder: Path) -> Any:
    """What the model of a run says of the test shapes, and the same training asked for again."""
    import pointset

    with pools_in(run.parent / "home"):
        model, about = pointset.load_run(run)
        found = pointset.evaluate(model, pointset.load_dataset(folder / "data", "test", POINTS, progress=False))
        return {"logits": found.logits, "summary": found.summary(), "classes": about["data"]["classes"]} | resume(
            run, folder
        )


def compare(out: Path, folder: Path) -> Any:
    """The comparison asked for again."""
    with pools_in(out.parent / "home"):
        return go_on_comparing(out, folder, robust=True)


def load(pools: Path, folder: Path) -> Any:
    """The shapes of both splits as they are trained and tested on."""
    import pointset

    with pools_in(pools.parent):
        sets = [pointset.load_dataset(folder / "data", split, POINTS, progress=False) for split in ("train", "test")]
        return [[(one[index][0].numpy(), int(one[index][1])) for index in range(len(one))] for one in sets]


def verify(pools: Path, folder: Path) -> Any:
    """`pointset data verify`, with the pools' points if it finds nothing."""
    from pointset.data.pools.verify import verify_dataset
    from pointset.errors import PointsetError

    with pools_in(pools.parent):
        problems = [
            f"{one.folder}: {problem}"
            for one in verify_dataset(folder / "data", progress=False)
            for problem in one.problems
        ]
    if problems:
        raise PointsetError("; ".join(problems))
    return [np.load(path) for path in sorted(pools.glob("*/*.npy"))]


def finish(pools: Path, folder: Path) -> Any:
    """The stopped build finished: the bytes of its pool."""
    from pointset.data.catalogue.folders import list_folder
    from pointset.data.pools.plan import Plan, Sampling
    from pointset.data.pools.store import build_pool
    from pointset.runs.workers import Workers

    with pools_in(pools.parent):
        plan = Plan.of("half", list_folder(folder / "data", "test"), Sampling(POINTS, normals=True))
        build_pool(plan, Workers(1), progress=False)
        return [path.read_bytes() for path in sorted(plan.folder.iterdir())]


RUN, CHECKPOINT, POOLS = "runs/*-seed0", "checkpoint-*", "home/pools"
FLIPS = (
    *(Files(f"run: {name}", "finished", name, evaluate) for name in ("run.json", "model.safetensors", "history.jsonl")),
    Files("run: SHA256SUMS", "finished", "SHA256SUMS", evaluate),
    Files("stopped run: run.json", "stopped", "run.json", resume),
    Files("stopped run: history.jsonl", "stopped", "history.jsonl", resume),
    *(
        Files(f"checkpoint: {name}", "stopped", f"{CHECKPOINT}/{name}", resume)
        for name in ("weights.safetensors", "best.safetensors", "optimizer.pt", "history.json", "SHA256SUMS")
    ),
    *(
        Files(f"comparison: {name}", "comparison", name, compare)
        for name in (f"sets-n{POINTS}.json", f"costs-n{POINTS}.json", "protocol.json", "results.csv", "results.json")
    ),
    Files("comparison: SHA256SUMS", "comparison", "SHA256SUMS", compare),
    *(
        Files(f"comparison's run: {name}", "comparison", f"{RUN}/{name}", compare)
        for name in ("result.json", "predictions.npz", "robustness.json", "run.json", "model.safetensors")
    ),
    *(
        Files(f"comparison's run: {name}", "comparison", f"{RUN}/{name}", compare)
        for name in ("history.jsonl", "SHA256SUMS")
    ),
    Files("pool: manifest.json", POOLS, "data-*/manifest.json", load),
    Files("pool: SHA256SUMS", POOLS, "data-*/SHA256SUMS", load),
    Files("pool: points.npy (data verify)", POOLS, "data-*/points.npy", verify),
    Files("pool in the making: points", POOLS, "half-*.partial/points.f32", finish),
    Files("pool in the making: finished.txt", POOLS, "half-*.partial/finished.txt", finish),
)
"""Every kind of file that is read again."""


@dataclass(frozen=True)
class Folders:
    """All of them, one flip in any."""

    name: str = "folders"

    def case(self, random: Random, folder: Path) -> Outcome:
        """A flip in any of the files."""
        return random.choice(FLIPS).case(random, folder)


FOLDERS = Folders()
