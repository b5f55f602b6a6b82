"""What to try for shapes whose class is not to be trusted."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from pointset.data.catalogue.folders import ShapeFile
from pointset.evaluation.shape_files import Guess, classify_files
from pointset.zoo.classifiers import Classifier
from pointset.zoo.models import create_pretrained
from pointset.zoo.pretrained import ANY_POSE, list_pretrained

SURE = 0.8
"""The least probability of a class with which another way of reading a shape is proposed; see "After a class that is
not to be trusted" in scripts/experiments/NOTES.md."""
TRIED = 8
"""Shapes that are tried, the first ones."""


def next_step(model: Classifier, shapes: Sequence[ShapeFile], *, up: str, keep_outliers: bool = False) -> str:
    """What to try for shapes whose class is not to be trusted, in words.

    The other upward axis, or the trained model for any pose if it has the same classes: the first with which at least
    half of the shapes have a class that is `SURE`. Otherwise the shapes are probably of none of the model's classes.

    Args:
        model: whose predictions are doubtful.
        shapes: the files; the first few are tried.
        up: the upward axis with which they were read: "y", "z", "auto" or "guess".
        keep_outliers: see `Preparation.prepare`.
    """
    some = shapes[:TRIED]
    for way, other, axis in _ways(model, up):
        with warnings.catch_warnings():  # said already
            warnings.simplefilter("ignore")
            found = [*classify_files(other, some, up=axis, keep_outliers=keep_outliers)]
        sure = [each.likeliest[0] for each in found if isinstance(each, Guess) and each.likeliest[0][1] >= SURE]
        if 2 * len(sure) >= len(some):
            seen = f"{sure[0][0]} is {sure[0][1]:.0%} likely"
            return f"try {way}, with which {seen if len(some) == 1 else f'{len(sure)} of {len(some)} are surer'}"
    shape = "the shape is" if len(shapes) == 1 else "the shapes are"
    return f"perhaps {shape} of none of the model's {len(model.classes or []):,} classes"


def _ways(model: Classifier, up: str) -> Iterator[tuple[str, Classifier, str]]:
    """Other options, with the model and the upward axis that they mean."""
    for axis in ("y", "z") if up != "guess" else ():
        if axis != up:
            yield f"--up {axis}", model, axis
    if ANY_POSE in list_pretrained():
        other: Any = create_pretrained(ANY_POSE).eval()
        if model.classes == other.classes and model.preparation != other.preparation:
            yield f"--model {ANY_POSE}", other, "auto"
