"""The toy dataset and the toy model of the tests; damage to files, and work that is killed in the middle."""

import dataclasses
import itertools
import multiprocessing
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import pointset
from pointset import Recipe, list_models
from pointset.comparison.runs import Run
from pointset.data import PointCache
from pointset.data.readers.off import write_off
from pointset.data.shapes10.build import make_shape
from pointset.nn import registry
from pointset.runs import records
from pointset.training.loop import Training
from pointset.zoo.out_of_distribution import TrainingDistribution

CLASSES = ("ball", "box", "rod")
ODD = "ISAB & PMA <4>"
"""The label of the third model of the fixture `reported`, which HTML has to escape."""
P = 23
"""Points of the clouds of a random cache."""
TETRAHEDRON = "OFF\n4 4 6\n0 0 0\n{size} 0 0\n0 {size} 0\n0 0 {size}\n3 0 1 2\n3 0 1 3\n3 0 2 3\n3 1 2 3\n"
CARD = """
title = "A toy"
data = "shapes10"
parameters = 1234
multiply_adds = 1
temperature = 2.0
command = "pointset train"
terms = "for nobody"
[low_confidence]
airplanes = 0.875
[calibration_error]
airplanes = 0.125
[accuracy]
64 = [0.5, 0.4, 0.6]
"""


def covering_models() -> list[str]:
    """Every encoder before `max`, `mean` and `pma`, every pooling behind `rff` and `isab16`, and the whole models."""
    listed = list_models()
    encoders, poolings = ([part.listed for part in registry.entries(kind)] for kind in ("encoder", "pooling"))
    wanted = {f"{encoder}-{pooling}" for encoder in encoders for pooling in ("max", "mean", "pma")}
    wanted |= {f"{encoder}-{pooling}" for encoder in ("rff", "isab16") for pooling in poolings}
    return [name for name in listed if name in wanted or "-" not in name]


def sparse(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Normalises over the real keys."""
    if mask is not None:
        logits = logits.masked_fill(~mask, torch.finfo(logits.dtype).min)
    return torch.softmax(2 * logits, dim=-1) - 0.125 * torch.tanh(logits)


def squashed(logits: Tensor, mask: Tensor | None) -> Tensor:
    """Computes each weight from its logit alone."""
    assert mask is None or mask.shape == (len(logits), 1, 1, logits.shape[-1])
    return logits.sigmoid()


class Sharpened(nn.Module):
    """Has a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.power = nn.Parameter(torch.ones(()))

    def forward(self, logits: Tensor, mask: Tensor | None) -> Tensor:
        return logits.sigmoid() ** self.power


OWN_WEIGHTS = (squashed, sparse, Sharpened())
"""User-defined functions from scores to weights."""


class Recorder(nn.Module):
    """A classifier that keeps the points and masks that it is given, in training and in evaluation."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layer = nn.Linear(3, classes)
        self.trained: list[tuple[Tensor, Tensor | None]] = []
        self.evaluated: list[tuple[Tensor, Tensor | None]] = []

    def forward(self, points: Tensor, mask: Tensor | None = None) -> Tensor:
        (self.trained if self.training else self.evaluated).append((points, mask))
        return self.layer(points.mean(dim=1))


def normal(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    """Numbers from N(0, 1), the same each time."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def clouds(label: int, count: int, points: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Points on balls, boxes or rods of random proportions."""
    X = rng.normal(size=(count, points, 3))
    X /= np.linalg.norm(X, axis=2, keepdims=True) if label == 0 else np.abs(X).max(axis=2, keepdims=True)
    stretch = rng.uniform(0.6, 1.4, size=(count, 1, 3))
    if label == 2:
        stretch[..., :2] *= 0.2
    return (X * stretch).astype(np.float32)


def bumpy(seed: int, count: int, sampling: int = 0, scales: Sequence[float] | None = None) -> NDArray[np.float64]:
    """Points on an ellipsoid with bumps that is unlike every other; another sampling has other points of it."""
    generator = np.random.default_rng(seed)
    scales = scales or generator.uniform(0.3, 1, 3).tolist()
    waves = 2 * generator.normal(size=(3, 3))
    sphere = np.random.default_rng((seed, sampling)).normal(size=(count, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    return sphere * scales * (1 + 0.3 * np.sin(sphere @ waves).sum(axis=1, keepdims=True))


def turn(seed: int) -> NDArray[np.float64]:
    """A rotation."""
    turned = np.linalg.qr(np.random.default_rng(seed).normal(size=(3, 3)))[0]
    return turned * np.linalg.det(turned)


def save(path: Path, cloud: Any) -> Path:
    """Write a cloud into a folder that is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, cloud)
    return path


def write(path: Path, content: Any) -> Path:
    """Write bytes, an array, or what a function of the path writes."""
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif callable(content):
        content(path)
    else:
        np.save(path, content)
    return path


def write_mesh(folder: Path, number: int) -> None:
    """Write a tetrahedron, whose size tells its number."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"shape{number}.off").write_text(TETRAHEDRON.format(size=number + 1))


def write_furniture(folder: Path, count: int) -> Path:
    """Write so many chairs and lamps of shapes10, each in the folder of its class."""
    for kind in ("chair", "lamp"):
        (folder / kind).mkdir(parents=True)
        for number in range(count):
            write_off(folder / kind / f"{number}.off", make_shape(kind, "train", number))
    return folder


def random_cache(shapes: int = 30, classes: int = 3, points: int = P, seed: int = 0) -> PointCache:
    """A point cache of random clouds, whose classes come in turn."""
    rng = np.random.default_rng(seed)
    return PointCache(
        rng.standard_normal((shapes, points, 3)).astype(np.float32),
        [f"shape{row}" for row in range(shapes)],
        np.arange(shapes) % classes,
        [f"class{label}" for label in range(classes)],
    )


def write_release(folder: Path, classes: Sequence[str], splits: dict[str, tuple[NDArray[Any], NDArray[Any]]]) -> Path:
    """Write points and labels of splits in the layout of ModelNet40's HDF5 release."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shape_names.txt").write_text("".join(f"{name}\n" for name in classes))
    for split, (points, labels) in splits.items():
        (folder / f"{split}_files.txt").write_text(f"elsewhere/ply_data_{split}0.h5\n")
        with h5py.File(folder / f"ply_data_{split}0.h5", "w") as file:
            file["data"], file["label"] = points, labels.astype(np.uint8)[:, None]
    return folder


def write_clouds(folder: Path) -> Path:
    """Write 40 + 20 balls, boxes and rods each, 64 points each."""
    rng = np.random.default_rng(0)
    splits = {}
    for split, count in (("train", 40), ("test", 20)):
        points = np.concatenate([clouds(label, count, 64, rng) for label in range(3)])
        splits[split] = points, np.repeat(np.arange(3), count)
    return write_release(folder, CLASSES, splits)


def write_shapes(folder: Path, shapes: int = 8, points: int = 64) -> Path:
    """A folder of clouds, balls and flat ones, so many of each in train and in test."""
    generator = np.random.default_rng(0)
    for split in ("train", "test"):
        for name, scale in {"ball": (1, 1, 1), "flat": (1, 1, 0.05)}.items():
            for number in range(shapes):
                save(folder / split / name / f"{name}_{number}.npy", generator.normal(size=(points, 3)) * scale)
    return folder


def write_clouds_release(folder: Path, train: int = 12, test: int = 6, classes: int = 3) -> Path:
    """Write random clouds, see `random_cache`."""
    sets = {"train": random_cache(train, classes, seed=train), "test": random_cache(test, classes, seed=test)}
    return write_release(folder, sets["train"].classes, {part: (own.points, own.labels) for part, own in sets.items()})


def small(name: str = "isab4-pma", **options: Any) -> Any:
    """A model of the three classes."""
    return pointset.create_model(name, classes=3, **{"dim": 16, **options})


def train_run(run: Path, data: Path, name: str, points: int = 16, recipe: Recipe | None = None, **options: Any) -> Any:
    """Train a model on a folder of data, for an epoch, and keep the run; the width is 8 unless it is given."""
    sets = pointset.load_dataset(data, points=points)
    model = pointset.create_model(name, classes=len(sets.classes), **{"dim": 8, **options})
    return pointset.fit(model, sets, recipe or Recipe(epochs=1), run=run, progress=False).model


def ship(name: str, folder: Path, clouds: Path, recipe: Recipe | None = None, **options: Any) -> Any:
    """Train a model with a name such as rff-max.toy on a folder of clouds for an epoch, and write it with its card."""
    model = train_run(folder / name, clouds, name.split(".")[0], recipe=recipe, **options)
    records.write_text(folder / name / "card.toml", CARD)
    (*_, last) = (layer for layer in model.modules() if isinstance(layer, nn.Linear))
    means = torch.zeros(1, last.in_features)
    TrainingDistribution(means, torch.zeros(last.in_features, 1), 1e9).save(folder / name)
    return model


def moved(module: nn.Module) -> nn.Module:
    """The module in float64, with weights and statistics that differ from their initial values."""
    generator, weights = torch.Generator().manual_seed(5), dict(module.named_parameters())
    for name, tensor in module.state_dict().items():
        if name in weights or "running_" in name:
            tensor += 0.3 * torch.rand(tensor.shape, generator=generator)
    return module.double()


def numbers(history: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a history without their times."""
    return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in history]


def compare(experiment: Any, folder: Path, workers: Any = None, report: bool = False) -> Any:
    """Run a comparison without a bar, in one worker unless others are given."""
    from pointset.comparison.comparing import run_experiment
    from pointset.runs.workers import Workers

    return run_experiment(experiment, folder, workers or Workers(1), progress=False, report=report)


def results(comparison: Any) -> list[Any]:
    """Names and results of the runs of a comparison, without their times."""
    return [(run.name, dataclasses.replace(run.result, seconds=0.0)) for run in comparison.runs]


def same_weights(first: nn.Module, second: nn.Module) -> bool:
    """True if two models have equal parameters and buffers."""
    pairs = zip(first.state_dict().values(), second.state_dict().values(), strict=True)
    return all(torch.equal(one, other) for one, other in pairs)


@dataclasses.dataclass(frozen=True)
class FatalRun(Run):
    """Kills the process in which it runs, like the out-of-memory killer; other processes import it from here."""

    def perform(self) -> Run:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("a killed process does nothing more")


def kill_at(call: int, owner: Any, name: str, work: Callable[..., object], *arguments: Any) -> None:
    """Do some work in a process that is killed when a function is called for the n-th time."""
    calls, plain = itertools.count(1), getattr(owner, name)

    def deadly(*given: Any, **options: Any) -> Any:
        if next(calls) == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*given, **options)

    def killed() -> None:
        setattr(owner, name, deadly)
        work(*arguments)

    process = multiprocessing.get_context("fork").Process(target=killed)
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # of threads, which do nothing here
        process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL


class StopError(Exception):
    """Ends a training as an interruption does."""


def stop_after(patch: pytest.MonkeyPatch, epochs: int) -> None:
    """Let trainings be interrupted after so many epochs."""
    original = Training._epoch

    def epoch(training: Training, number: int, bar: Any) -> None:
        if number >= epochs:
            raise StopError
        original(training, number, bar)

    patch.setattr(Training, "_epoch", epoch)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder by their names in it."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flip(path: Path, place: int) -> None:
    """Flip a bit of the byte at a place in a file, whose size and time stay."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
