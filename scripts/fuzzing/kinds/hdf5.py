"""The kind of folders in the layout of ModelNet40's HDF5 release."""

import io
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import h5py
import numpy as np

from fuzzing import mutations
from fuzzing.kinds.base import quietly
from fuzzing.oracles import hdf5
from fuzzing.oracles.words import Illegal
from fuzzing.verdicts import Outcome, of_error
from pointset.data.catalogue.released import read_released

CLASSES = "airplane\nbathtub\nnight_stand\n"
LISTED = "data/modelnet40_ply_hdf5_2048/ply_data_{}.h5\n"
CLOUDS = np.random.default_rng(0).standard_normal((2, 4, 5, 3)).astype(np.float32)
LABELS = np.array([[[0], [1], [2], [1]], [[2], [2], [0], [0]]], dtype=np.uint8)
FILE = "ply_data_train1.h5"
Fill = Callable[[h5py.File], Any]


def made(fill: Fill) -> bytes:
    """An HDF5 file."""
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        fill(file)
    return content.getvalue()


def usual(file: h5py.File, data: Any = CLOUDS[1], label: Any = LABELS[1], **options: Any) -> None:
    """Both keys, each as an array."""
    file.create_dataset("data", data=data, **options)
    file.create_dataset("label", data=label)


def without(key: str, other: Callable[[h5py.File, str], Any] | None = None) -> Fill:
    """A file with something else under a key, or nothing."""

    def fill(file: h5py.File) -> None:
        usual(file)
        del file[key]
        if other is not None:
            other(file, key)

    return fill


def replaced(key: str, change: Callable[[np.ndarray], Any]) -> Fill:
    """A file with an array changed."""
    return lambda file: usual(file, **{key: change((CLOUDS if key == "data" else LABELS)[1])})


def put(row: int, value: float) -> Callable[[np.ndarray], np.ndarray]:
    """Change one number of an array."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        array[row].flat[0] = value
        return array

    return change


def linked(file: h5py.File, key: str) -> None:
    """A soft link to the array, which has another name."""
    file.create_dataset("elsewhere", data=(CLOUDS if key == "data" else LABELS)[1])
    file[key] = h5py.SoftLink("/elsewhere")


def with_more(file: h5py.File) -> None:
    """Both keys, and others."""
    usual(file)
    file.create_dataset("normal", data=CLOUDS[0])
    file.create_group("more")


GOOD: list[Fill] = [
    usual,
    lambda file: usual(file, compression="gzip", chunks=(2, 5, 3)),
    lambda file: usual(file, CLOUDS[1].astype(np.float64), LABELS[1][:, 0].astype(np.int64)),
    lambda file: usual(file, compression="gzip", shuffle=True, fletcher32=True),
    with_more,
    without("label", linked),
]
WRONG: list[Fill] = [
    *[without(key) for key in ("data", "label")],
    *[without(key, lambda file, key: file.create_group(key)) for key in ("data", "label")],
    *[without(key, lambda file, key: file.create_dataset(key, data=h5py.Empty("f4"))) for key in ("data", "label")],
    *[without(key, lambda file, key: file.create_dataset(key, (4, 5, 3), "f4")) for key in ("data", "label")],
    without("data", lambda file, key: file.create_dataset(key, (2**30, 100, 3), "f4")),
    without("data", lambda file, key: file.create_dataset(key, (2**30, 100, 3), "f4", chunks=(1, 100, 3))),
    without("data", lambda file, key: file.__setitem__(key, h5py.SoftLink("/nowhere"))),
    without("data", lambda file, key: file.__setitem__(key, h5py.SoftLink("/data"))),
    without("data", lambda file, key: file.__setitem__(key, h5py.ExternalLink("ply_data_train0.h5", "/data"))),
    without("data", lambda file, key: file.__setitem__(key, h5py.ExternalLink("nowhere.h5", "/data"))),
    without("data", lambda file, key: file.__setitem__(key, np.dtype("f4"))),
    *[replaced("data", put(row, value)) for row in (0, 3) for value in (np.nan, np.inf, 1e39, 1e-40)],
    *[replaced("label", put(row, value)) for row in (0, 3) for value in (-1, 3, 255, 2**40)],
    *[replaced("data", lambda array: array[:, :, :2]), replaced("data", lambda array: array[:3])],
    *[replaced("data", lambda array: array[:, :4]), replaced("data", lambda array: array[0])],
    *[replaced("data", lambda array: array[:0]), replaced("data", lambda array: array[:, :0])],
    *[replaced("label", lambda array: array[:3]), replaced("label", lambda array: array.T)],
    *[replaced(key, lambda array: array.astype(complex)) for key in ("data", "label")],
    *[replaced(key, lambda array: array.astype("S5")) for key in ("data", "label")],
    *[replaced(key, lambda array: array > 0) for key in ("data", "label")],
    *[
        replaced("label", lambda array: array.astype(np.float32)),
        replaced("data", lambda array: array.astype(np.int32)),
    ],
]
CHANGED = {"train_files.txt": 0.2, "shape_names.txt": 0.1, FILE: 0.7}
"""Which file is damaged, how often."""


class Hdf5Kind:
    """Folders with three lists and three files, of which one is damaged."""

    name = "hdf5"

    @cached_property
    def good(self) -> list[bytes]:
        """Good files with the second half of the clouds."""
        return [made(fill) for fill in GOOD]

    @cached_property
    def wrong(self) -> list[bytes]:
        """Files that are wrong, for one reason each; rounding to zero is not one."""
        return [made(fill) for fill in WRONG]

    @cached_property
    def first(self) -> bytes:
        """The file with the first half of the clouds."""
        return made(lambda file: usual(file, CLOUDS[0], LABELS[0]))

    def case(self, random: Random, folder: Path) -> Outcome:
        """Write a folder, damage one file in it, let both read it, and compare."""
        self.write(folder, random.choice(self.good))
        path = folder / random.choices(list(CHANGED), list(CHANGED.values()))[0]
        content = path.read_bytes()
        if path.suffix == ".txt":
            content = mutations.mutate(content, random, mutations.TEXT)
        elif random.random() < 0.15:
            content = random.choice(self.wrong)
        else:
            content = mutations.mutate(content, random, mutations.BINARY)
        path.write_bytes(content)
        return self.judge(folder, content)

    def write(self, folder: Path, content: bytes) -> None:
        """A good folder."""
        texts = {"shape_names.txt": CLASSES, "test_files.txt": LISTED.format("test0")}
        texts["train_files.txt"] = LISTED.format("train0") + LISTED.format("train1")
        for name, text in texts.items():
            (folder / name).write_text(text, encoding="utf-8")
        (folder / "ply_data_train0.h5").write_bytes(self.first)
        (folder / FILE).write_bytes(content)

    def judge(self, folder: Path, content: bytes) -> Outcome:
        """Compare the readings of a folder."""
        try:
            ours = read_released(folder, "train")
        except Exception as error:
            outcome = of_error(error, folder, content)
            if outcome.verdict == "refused":
                try:
                    quietly(hdf5.read, folder)
                except Illegal:
                    return outcome
                return Outcome("strict", outcome.detail, content)
            return Outcome(outcome.verdict, outcome.detail, content)
        try:
            points, labels, names, classes = quietly(hdf5.read, folder)
        except Illegal as illegal:
            return Outcome("illegal", f"{illegal}", content)
        same = ours.names == names and ours.classes == classes and np.array_equal(ours.labels, labels)
        return Outcome("alike") if same and np.array_equal(ours.points, points) else Outcome("differs", "", content)


HDF5 = Hdf5Kind()
