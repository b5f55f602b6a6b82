"""Fit how a model's temperature rises for foreign shapes, measure its probabilities, and write both on its card.

    python scripts/experiments/trust.py isab16-pma.modelnet40-1024 --data path/to/modelnet40_ply_hdf5 \
        --foreign path/to/labeled_db path/to/modelnet9_obj --write

See `pointset.zoo.trust`. The exponent is fitted to held-out training shapes, as they are, corrupted and turned, and to
shapes of no class, made of two of them; test shapes and foreign shapes are only measured on.
"""

import json
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import cyclopts
import numpy as np
import torch
from cyclopts import Parameter
from numpy import ndarray
from saved import run
from scipy.optimize import minimize_scalar
from sklearn.covariance import LedoitWolf
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn

from pointset.commands.terminal import as_table
from pointset.data import RotateAny, RotateUp
from pointset.data.axes import UsualUp
from pointset.data.dataset import PointSets
from pointset.data.normalize import normalize_points
from pointset.data.reload import load_like
from pointset.errors import PointsetError
from pointset.evaluation.robustness import corrupted_sets
from pointset.evaluation.shape_files import Guess, accuracy_of, classify_files, in_folders
from pointset.runs import records
from pointset.training.loading import find_run, load_model
from pointset.zoo.classifiers import Classifier
from pointset.zoo.predicting import Prediction, predict
from pointset.zoo.pretrained import REINSTALL
from pointset.zoo.trust import Trust

SHIFTS = {"density": 3, "gaussian": 3, "background": 3, "rotation": 5, "shear": 5, "distortion": 3, "drop_local": 3}
"""Corruptions of ModelNet40-C and their severities."""
FITTED, MEASURED = 3_000, 400
"""Number of training shapes for the means, and of test shapes: of more, every second or third and so on is taken."""
BINS = 15
SEED = 5
BATCH = 64
app = cyclopts.App(name="trust.py", help=__doc__, result_action="return_value")


class Worth(NamedTuple):
    """What probabilities are worth."""

    auroc: float
    """Of the probabilities of right and wrong predictions."""
    calibration_error: float

    @classmethod
    def of(cls, probabilities: ndarray, right: ndarray) -> "Worth":
        """Of the likeliest classes [N], and whether they are right [N]."""
        places = np.clip(np.ceil(probabilities * BINS).astype(int) - 1, 0, BINS - 1)
        gaps = np.bincount(places, weights=probabilities - right, minlength=BINS)
        return cls(float(roc_auc_score(right, probabilities)), float(np.abs(gaps).sum() / len(right)))


@app.default
def main(
    model: str,
    *,
    foreign: Annotated[list[str], Parameter(consume_multiple=True)],
    data: str | None = None,
    up: UsualUp = "z",
    write: bool = False,
) -> None:
    """Fit and measure a trained model.

    Args:
        model: a trained model's name, or the folder of a run that has a validation split.
        foreign: folders with other shapes, some of classes that the model knows by name.
        data: the data of the model's training; as its run says when not given.
        up: the axis that points up in the foreign shapes.
        write: put the result on the card.
    """
    network = load_model(model)
    description = network.description
    share = description["recipe"]["validation"]
    if not share:
        raise PointsetError(f"{model} has no validation split to fit on: train with --validation 0.1")
    own, test = (load_like(description["data"], split, data) for split in ("train", "test"))
    train, held_out = own.split_validation(share, description["seed"])
    network.trust = fit_trust(network, train, held_out)
    worth = dict(measure(network, description, test, foreign, up))
    print(f"median {network.trust.median:.6g}, exponent {network.trust.exponent:.4f}")
    rows = [
        {"shapes": name, "AUROC of errors": f"{row.auroc:.3f}", "ECE %": f"{100 * row.calibration_error:.1f}"}
        for name, row in worth.items()
    ]
    print(as_table(rows))
    if write:
        write_card(find_run(model), network.trust, worth)


def fit_trust(model: Classifier, train: PointSets, held_out: PointSets) -> Trust:
    """The class means of training shapes, and the exponent with the least log loss on held-out shapes."""
    some = _some(train, FITTED)
    rows, labels = _rows(predict(model, some, last_rows=True)).cpu().numpy(), some.labels.numpy()
    present, places = np.unique(labels, return_inverse=True)
    means = np.stack([rows[labels == label].mean(axis=0) for label in present])
    precision = LedoitWolf(assume_centered=True).fit(rows.astype(np.float64) - means[places]).precision_
    return fit_exponent(model, held_out, torch.from_numpy(means), torch.from_numpy(precision).float())


def fit_exponent(model: Classifier, held_out: PointSets, means: Tensor, precision: Tensor) -> Trust:
    """The exponent with the least log loss on held-out shapes as they are, corrupted and turned, and of no class."""
    trust = Trust(means, precision, 1.0, 0.0)
    predictions = [*_predictions(model, chain(shifted(held_out), [of_no_class(held_out)]))]
    *pairs, (far, unknown) = [(trust.distances(_rows(one)), one.logits.double()) for one in predictions]
    median = float(pairs[0][0].median())
    distances, logits = (torch.cat(column) for column in zip(*pairs, strict=True))
    labels = held_out.labels.repeat(len(pairs))

    def log_probabilities(logits: Tensor, distances: Tensor, exponent: float) -> Tensor:
        factors = (distances / median).clamp(min=1).pow(exponent)[:, None]
        return (logits / (model.temperature * factors)).log_softmax(dim=1)

    def loss(exponent: float) -> float:
        known = nn.functional.nll_loss(log_probabilities(logits, distances, exponent), labels)
        of_none = -log_probabilities(unknown, far, exponent).mean()  # each class is as right as the others
        return float(len(pairs) * known + of_none)

    exponent = minimize_scalar(loss, bounds=(0.0, 2.0), method="bounded").x
    return Trust(means, precision, round(median, 4), round(float(exponent), 4))


def _predictions(model: Classifier, clouds: Iterator[Tensor]) -> Iterator[Prediction]:
    for points in clouds:
        yield predict(model, ((batch, None) for batch in points.split(BATCH)), last_rows=True)


def _some(sets: PointSets, most: int) -> PointSets:
    return sets.subset(list(range(0, len(sets), max(1, len(sets) // most))))


def _rows(prediction: Prediction) -> Tensor:
    if prediction.last_rows is None:
        raise PointsetError("the model has no last linear layer, whose input gives the distance")
    return prediction.last_rows


def shifted(sets: PointSets) -> Iterator[Tensor]:
    """The clouds [N, n, 3] as they are, corrupted, turned in three ways, and without one half."""
    points, generator = sets.points, torch.Generator().manual_seed(SEED)
    yield points
    for name, severity in SHIFTS.items():
        yield corrupted_sets(sets, name, severity).points
    yield RotateAny()(points, generator)
    yield RotateUp(sets.up)(points, generator)
    yield points[..., [0, 2, 1]] * torch.tensor([1.0, -1.0, 1.0])
    direction = nn.functional.normalize(torch.randn(len(points), 3, 1, generator=generator), dim=1)
    lower = (points @ direction)[..., 0].argsort(dim=1)[:, : points.shape[1] // 2]
    yield normalize_points(points.take_along_dim(lower[..., None], dim=1), "center-standardize")


def of_no_class(sets: PointSets) -> Tensor:
    """Clouds of which one half is of a shape, and the other of a shape of another class."""
    points, generator = sets.points, torch.Generator().manual_seed(SEED)
    others = torch.randperm(len(points), generator=generator)
    directions = nn.functional.normalize(torch.randn(len(points), 3, 1, generator=generator), dim=1)
    half = points.shape[1] // 2
    lower = points.take_along_dim((points @ directions).argsort(dim=1)[:, :half], dim=1)
    upper = points[others].take_along_dim((points[others] @ directions).argsort(dim=1)[:, half:], dim=1)
    return normalize_points(
        torch.cat([lower, upper], dim=1)[sets.labels != sets.labels[others]], sets.options.normalize
    )


def measure(
    model: Classifier, description: dict[str, Any], test: PointSets, foreign: list[str], up: UsualUp
) -> Iterator[tuple[str, Worth]]:
    """What the probabilities are worth, for test shapes and for foreign shapes."""
    some = _some(test, MEASURED)
    clean, *others = (
        (one.probabilities.max(axis=1), one.logits.argmax(dim=1).numpy() == some.labels.numpy())
        for one in _predictions(model, shifted(some))
    )
    yield "test shapes", Worth.of(*clean)
    yield "test shapes, corrupted or turned", Worth.of(*map(np.concatenate, zip(*others, strict=True)))
    for folder in foreign:
        answers = classify_files(model, in_folders([Path(folder)]), up=up)
        guesses = [answer for answer in answers if isinstance(answer, Guess)]
        accuracies = [accuracy_of([guess], model.classes or []) for guess in guesses]
        probabilities = np.array([guess.likeliest[0][1] for guess in guesses])
        right, known = (np.array(column, dtype=bool) for column in zip(*accuracies, strict=True))
        name = Path(folder).name
        yield f"{name}, classes of the model", Worth.of(probabilities[known], right[known])
        if not known.all():
            yield f"{name}, all classes", Worth.of(probabilities, right)


def write_card(folder: Path, trust: Trust, worth: dict[str, Worth]) -> None:
    """Put the figures on the card in place of earlier ones; TOML's tables end where the next begins."""
    file = folder / "card.toml"
    tables = ("\n" + records.read_text(file, REINSTALL)).split("\n[")
    kept = "\n[".join(table for table in tables if not table.startswith("trust")).strip("\n")
    lines = [kept, "", "[trust]", f"median = {trust.median:.8g}", f"exponent = {trust.exponent:.8g}"]
    for key in Worth._fields:
        lines += [f"[trust.{key}]"]
        lines += [f"{json.dumps(name)} = {getattr(row, key):.4f}" for name, row in worth.items()]
    trust.save(folder)
    records.write_text(file, "\n".join(lines) + "\n")
    print(f"{file}: exponent {trust.exponent:.3g}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(run(app))
