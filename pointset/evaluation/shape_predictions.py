"""Predictions for single shapes: the most likely classes of each, and files of predictions."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from pointset.data.catalogue.folders import LooseShape
from pointset.errors import PointsetError
from pointset.runs.atomic import check_writable, write_for_user
from pointset.runs.spreadsheets import as_texts
from pointset.zoo.predicting import Prediction
from pointset.zoo.trust import LEAST

BEST = 5
"""Number of classes listed for each shape."""
DIGITS = 6
SUFFIXES = (".csv", ".json", ".parquet")


@dataclass(frozen=True)
class Guess:
    """The prediction of a model for one shape."""

    name: str
    """Path of the file, as given or relative to its folder; for a dataset, the name of the shape."""
    likeliest: tuple[tuple[str, float], ...]
    """At most five classes with their probabilities, the most likely first."""
    entropy: float
    """Entropy of the probabilities of all classes, in nats."""
    points: int
    """Number of points that the model got."""
    true_class: str = ""
    """The true class, empty if unknown; it may be a class that the model does not know."""
    streamed: bool = False
    """True if the points were read from the disk in pieces."""

    @property
    def do_not_trust(self) -> bool:
        """True if the likeliest class is more likely wrong than right."""
        return self.likeliest[0][1] < LEAST

    def as_dict(self) -> dict[str, Any]:
        """The prediction as plain data, for JSON."""
        classes = [{"class": name, "probability": _short(probability)} for name, probability in self.likeliest]
        found: dict[str, Any] = {"name": self.name, "true_class": self.true_class, "classes": classes}
        found |= {"entropy": _short(self.entropy), "points": self.points, "streamed": self.streamed}
        return found | {"do_not_trust": self.do_not_trust}

    def as_row(self) -> dict[str, Any]:
        """As one row of a table: class_1, probability_1, class_2, ..."""
        row = self.as_dict()
        classes = row.pop("classes")
        numbered = {f"{key}_{place}": one[key] for place, one in enumerate(classes, 1) for key in one}
        return {"name": row.pop("name"), "true_class": row.pop("true_class")} | numbered | row


def guess(
    shapes: Sequence[LooseShape],
    prediction: Prediction,
    classes: Sequence[str],
    points: Sequence[int] | ndarray,
    *,
    streamed: bool = False,
) -> list[Guess]:
    """The most likely classes of shapes.

    Args:
        shapes: the shapes, with their names and true classes.
        prediction: of the shapes; see `pointset.zoo.predicting.predict`.
        classes: classes of the model, in the order of its logits.
        points: number of points that the model got for each shape.
        streamed: see `Guess`.
    """
    from scipy.special import entr

    shares, logits = prediction.probabilities, prediction.logits.cpu().numpy()
    # Logits that differ by little can have the same probability, so the order is that of the logits.
    order = np.argsort(-logits, axis=1, kind="stable")[:, :BEST]
    entropies = entr(shares).sum(axis=1)
    return [
        Guess(
            name=shape.name,
            likeliest=tuple((classes[index], float(shares[row, index])) for index in order[row]),
            entropy=float(entropies[row]),
            points=int(points[row]),
            true_class=shape.true_class,
            streamed=streamed,
        )
        for row, shape in enumerate(shapes)
    ]


def accuracy_of(guesses: Sequence[Guess], classes: Sequence[str]) -> tuple[float, int]:
    """Share that is right of the shapes whose class is one of the model's by its name, and their number.

    "Night stand" is night_stand, unless the model tells names apart that differ in no more than that.
    """
    apart = len({_plain(name) for name in classes}) < len(set(classes))
    read: Callable[[str], str] = str if apart else _plain
    names = {read(name) for name in classes}
    known = [one for one in guesses if read(one.true_class) in names]
    right = sum(read(one.likeliest[0][0]) == read(one.true_class) for one in known)
    return (right / len(known) if known else 0.0), len(known)


def _plain(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


def check_suffix(path: Path) -> None:
    """Raise a PointsetError if predictions cannot be written to a path of this name.

    Raises:
        PointsetError: the suffix is none of `SUFFIXES`, what writes it is not installed, its folder is
            not there, or it is a folder itself.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise PointsetError(f"{path}: the name of a file of predictions must end in {', '.join(SUFFIXES)}")
    missing = [name for name in ("pandas", "pyarrow") if suffix == ".parquet" and find_spec(name) is None]
    if missing:
        raise PointsetError(f"writing {path} needs {' and '.join(missing)}: pip install {' '.join(missing)}")
    check_writable(path)


def write_guesses(path: Path, guesses: Sequence[Guess], about: Mapping[str, Any]) -> None:
    """Write predictions, atomically, as the suffix says; see `SUFFIXES`.

    Args:
        path: the file to write.
        guesses: one row each.
        about: common information, saved only in JSON: model, classes, temperature.

    Raises:
        PointsetError: as for `check_suffix`, or the path cannot be written.
    """
    check_suffix(path)
    writer = {".csv": _write_csv, ".json": _write_json, ".parquet": _write_parquet}[path.suffix.lower()]
    write_for_user(path, lambda temporary: writer(temporary, guesses, about))


def _write_csv(path: Path, guesses: Sequence[Guess], about: Mapping[str, Any]) -> None:
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        rows = [as_texts(row) for row in _rows(guesses)]
        writer = csv.DictWriter(file, rows[0] if rows else (), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _write_json(path: Path, guesses: Sequence[Guess], about: Mapping[str, Any]) -> None:
    content = {**about, "predictions": [one.as_dict() for one in guesses]}
    path.write_text(
        json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8", errors="backslashreplace"
    )


def _write_parquet(path: Path, guesses: Sequence[Guess], about: Mapping[str, Any]) -> None:
    import pandas

    pandas.DataFrame(list(_rows(guesses))).to_parquet(path, engine="pyarrow", index=False)


def _rows(guesses: Sequence[Guess]) -> Iterator[dict[str, Any]]:
    return (one.as_row() for one in guesses)


def _short(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")
