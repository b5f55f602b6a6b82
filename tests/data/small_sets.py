"""Small pools of points, and a folder with one."""

from pathlib import Path

import h5py
import numpy as np

from pointset.data.point_sets import Pool

P = 23


def pool(shapes: int = 30, classes: int = 3, points: int = P, seed: int = 0) -> Pool:
    rng = np.random.default_rng(seed)
    return Pool(
        rng.standard_normal((shapes, points, 3)).astype(np.float32),
        [f"shape{row}" for row in range(shapes)],
        np.arange(shapes) % classes,
        [f"class{label}" for label in range(classes)],
        "uniform",
    )


def release(folder: Path, train: int = 12, test: int = 6, classes: int = 3) -> Path:
    """A small folder in the HDF5 release's layout."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shape_names.txt").write_text("".join(f"class{label}\n" for label in range(classes)))
    for split, count in (("train", train), ("test", test)):
        (folder / f"{split}_files.txt").write_text(f"somewhere/ply_data_{split}0.h5\n")
        with h5py.File(folder / f"ply_data_{split}0.h5", "w") as file:
            file["data"] = pool(count, classes, seed=count).points
            file["label"] = (np.arange(count) % classes)[:, None].astype(np.uint8)
    return folder
