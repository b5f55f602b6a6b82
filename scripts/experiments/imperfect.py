"""Train dumlp16-max+dumlp16.modelnet40-1024: a network with local features, on imperfect copies of whole clouds.

    python scripts/experiments/imperfect.py path/to/modelnet40_ply_hdf5 --run runs/imperfect

`pointset train --augment thin crop ...` computes local features from each augmented set of 64 to 320 points. This
script augments whole clouds of 1,024 points (three copies of each shape) and computes local features from each copy, as
at inference. A training set is sampled from a copy with a probability of 0.6. Results: "Imperfect clouds" in NOTES.md.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import support
import torch
from numpy import ndarray
from saved import run as run_app

from pointset import PointSets, Recipe, create_model, fit, load_dataset
from pointset.data import augmentation_from_names

COPIES = 3
"""Number of imperfect copies of each shape."""
WHOLE = 0.4
"""Probability that a training set is sampled from the original cloud and not from a copy. Some copies are unchanged,
because each augmentation is applied with a probability."""
AT_ONCE = 256
IMPERFECTIONS = ("thin", "crop", "uneven", "background")
OPTIONS = support.OPTIONS.changed({"local_feature_noise": 0.15})
RECIPE = Recipe(
    epochs=60,
    batch_size=64,
    train_points=(64, 320),
    optimizer="muon",
    learning_rate=5e-3,
    weight_decay=0.05,
    label_smoothing=0.2,
    augment=("stretch-wide", "shift-wide", "jitter", "cutmix-k"),
    validation=0.05,
    precision="bfloat16",
)
app = cyclopts.App(name="imperfect.py", help=__doc__, result_action="return_value")


class CopiedSets(PointSets):
    """Sets that are sampled in training from the shapes and their copies, which follow the shapes in the cache."""

    def draw_indices(
        self, indices: torch.Tensor | Sequence[int], generator: torch.Generator, size: int | None = None
    ) -> Any:
        """Draw subsets of the shapes or of their copies."""
        shapes, rows = len(self.point_cache) // (COPIES + 1), self.rows
        shares = torch.rand(len(indices), generator=generator).numpy()
        copies = np.ceil((shares - WHOLE) / (1 - WHOLE) * COPIES).clip(min=0).astype(np.int64)
        try:
            self.rows = rows.clone()
            self.rows[torch.as_tensor(indices)] += torch.from_numpy(shapes * copies)
            return super().draw_indices(indices, generator, size)
        finally:
            self.rows = rows


def with_copies(sets: PointSets, seed: int) -> CopiedSets:
    """Return the same shapes with imperfect copies of their clouds. All clouds must have the same number of points."""
    cache, augment = sets.point_cache, augmentation_from_names(IMPERFECTIONS, sets.up)
    blocks: list[ndarray] = [cache.points]
    for copy in range(COPIES):
        drawn = np.random.SeedSequence((seed, copy)).generate_state(1, np.uint64)[0]
        generator = torch.Generator().manual_seed(int(drawn >> np.uint64(1)))
        clouds = torch.from_numpy(np.array(cache.points)).split(AT_ONCE)
        blocks.append(torch.cat([augment(some, generator) for some in clouds]).numpy())
    copies = cache.with_columns(
        {"points": np.concatenate(blocks)},
        names=[f"{name}#{copy}" if copy else name for copy in range(COPIES + 1) for name in cache.names],
        labels=np.tile(cache.labels, COPIES + 1),
    )
    rows = torch.arange(len(cache))
    copied = CopiedSets(copies, sets.options, name=sets.name, source=sets.source, split=sets.split, rows=rows)
    copied.groups = sets.groups
    return copied


@app.default
def main(data: Path, *, run: Path, seed: int = 0) -> None:
    """Train the network.

    Args:
        data: folder with the HDF5 release of ModelNet40.
        run: folder of the run.
        seed: seed of the copies, the initial weights and the training.
    """
    train = with_copies(load_dataset(data, points=1024, normalize="standardize"), seed)
    model = create_model("dumlp16-max+dumlp16", train.classes, OPTIONS, seed=seed)
    fit(model, train, RECIPE, seed=seed, run=run)


if __name__ == "__main__":
    sys.exit(run_app(app))
