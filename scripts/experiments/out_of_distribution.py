"""Compute the training statistics of a trained model that detect out-of-distribution shapes, and measure the detection.

    python scripts/experiments/out_of_distribution.py isab16-pma.modelnet40-1024 --data path/to/modelnet40_ply_hdf5 \
        --others path/to/labeled_db --write

`pointset.zoo.out_of_distribution` defines the statistics. Class means and covariance are computed from training
shapes, and the median distance from the validation split. The covariance is shrunk (Ledoit and Wolf 2004), because
units that are 0 for all training shapes would otherwise have no effect on the distance. Detection is measured on test
shapes and on the shapes of `--others`.
"""

import json
import sys
from pathlib import Path
from typing import Any

import cyclopts
import numpy as np
import pandas as pd
import torch
from numpy import ndarray
from saved import run
from sklearn.covariance import LedoitWolf
from tabulate import tabulate
from torch import Tensor

import pointset
from pointset import PointsetError
from pointset.data import PointSets, load_like
from pointset.evaluation import evaluate
from pointset.zoo.out_of_distribution import TrainingDistribution

FITTED, MEASURED = 3_000, 500
"""Numbers of training shapes and of test shapes. If a split has k times as many shapes, every k-th shape is used."""
RANK = 48
"""Number of eigenvectors of the covariance that are stored."""
BINS = 15
app = cyclopts.App(name="out_of_distribution.py", help=__doc__, result_action="return_value")


@app.default
def main(
    model: str, *, others: Path | None = None, data: str | None = None, up: str = "z", write: bool = False
) -> None:
    """Compute the statistics of a trained model and print a table of low confidence and calibration error.

    Args:
        model: name of a pretrained model, or folder of a run. The training must have had a validation split.
        others: folder with other shapes, in a subfolder per class. Names of classes may be those of the model.
        data: dataset of the training; default: the path in the description of the run.
        up: upward axis of the other shapes.
        write: save the statistics in the folder of the weights, and the table in the model card.
    """
    network = pointset.load_model(model)
    description, share = network.description, network.description["recipe"]["validation"]
    if not share:
        raise PointsetError(f"{model} has no validation split for the median distance: train with --validation 0.1")
    own, test = (load_like(description["data"], split, data) for split in ("train", "test"))
    train, held_out = own.split_validation(share, description["seed"])
    some = _some(train, FITTED)
    network.training_distribution = fit(embeddings(network, some), some.labels, embeddings(network, held_out))
    tested = _some(test, MEASURED)
    measured = measure(network, tested, np.array(tested.classes)[tested.labels], ["test shapes"])
    if others is not None:  # class/file
        files = sorted(path for path in others.glob("*/*") if path.is_file())
        true = np.array([path.parent.name.lower().replace(" ", "_").replace("-", "_") for path in files])
        names = [f"{others.name}, classes of the model", f"{others.name}, other classes"]
        measured += measure(network, files, true, names, up=up)
    print(tabulate(measured, headers="keys"))
    if write:
        folder = Path(pointset.__file__).parent / "zoo" / "trained" / model
        write_card(folder if folder.exists() else Path(model), network.training_distribution, measured)


def embeddings(model: Any, sets: PointSets) -> Tensor:
    """Return the inputs [N, width] of the model's last linear layer."""
    rows = list[Tensor]()
    with model.head[-1].register_forward_pre_hook(lambda _, inputs: rows.append(inputs[0])):
        evaluate(model, sets)
    return torch.cat(rows).float()


def fit(rows: Tensor, labels: Tensor, held_out: Tensor) -> TrainingDistribution:
    """Return the statistics from the embeddings and labels of training shapes and the embeddings of held-out shapes."""
    present, places = labels.unique(return_inverse=True)
    means = torch.stack([rows[labels == label].mean(dim=0) for label in present])
    covariance = LedoitWolf(assume_centered=True).fit((rows - means[places]).double().numpy()).covariance_
    return from_covariance(means, torch.from_numpy(covariance), held_out)


def from_covariance(means: Tensor, covariance: Tensor, held_out: Tensor) -> TrainingDistribution:
    """Return the statistics for class means and a covariance. Eigenvalues after the first `RANK` have the mean s^2."""
    values, vectors = torch.linalg.eigh(covariance)
    values, vectors = values.flip(0), vectors.flip(1)
    rank = min(RANK, len(values) - 1)
    directions = vectors[:, :rank] * (1 - values[rank:].mean() / values[:rank]).clamp(min=0).sqrt()
    distribution = TrainingDistribution(means.half(), directions.half(), 1.0)
    median = float(distribution.distances(held_out).square().median())
    return TrainingDistribution(means.half(), directions.half(), median)


def measure(model: Any, shapes: Any, true: ndarray, names: list[str], **reading: str) -> list[dict[str, object]]:
    """Return a row for shapes of the model's classes and, if there is a second name, a row for the other shapes.

    A row has the share of shapes with low confidence and, for classes of the model, the calibration error.
    """
    found, known = pd.DataFrame(model.classify(shapes, **reading)), np.isin(true, model.classes)
    right, rows = found["class"] == true, list[dict[str, object]]()
    for name, own in zip(names, (known, ~known), strict=False):
        low = round(float(found.low_confidence[own].mean()), 4)
        rows.append({"shapes": name, "number": int(own.sum()), "low_confidence": low})
    rows[0]["calibration_error"] = round(calibration_error(found.probability[known], right[known]), 4)
    return rows


def calibration_error(probabilities: pd.Series, right: pd.Series) -> float:
    """Return the expected calibration error: the mean absolute difference of probability and accuracy over bins."""
    places = np.clip(np.ceil(probabilities * BINS).astype(int) - 1, 0, BINS - 1)
    gaps = np.bincount(places, weights=probabilities - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(right))


def _some(sets: PointSets, most: int) -> PointSets:
    return sets.subset(list(range(0, len(sets), max(1, len(sets) // most))))


def write_card(folder: Path, distribution: TrainingDistribution, measured: list[dict[str, object]]) -> None:
    """Save the statistics, and replace the measurements in the model card."""
    file, keys = folder / "card.toml", ("low_confidence", "calibration_error")
    tables = ("\n" + file.read_text(encoding="utf-8")).split("\n[")
    kept = "\n[".join(table for table in tables if not table.startswith((*keys, "trust"))).strip("\n")
    lines = [kept]
    for key in keys:
        lines += ["", f"[{key}]"]
        lines += [f"{json.dumps(one['shapes'])} = {one[key]}" for one in measured if key in one]
    distribution.save(folder)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{file}: written")


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(run(app))
