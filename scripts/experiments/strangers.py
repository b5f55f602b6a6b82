"""Measure how well two scores tell shapes that a model does not know from those that it does, and write it on a card.

    python scripts/experiments/strangers.py lacking isab16-pma --data path/to/modelnet40_ply_hdf5 --count 10
    python scripts/experiments/strangers.py card isab16-pma.modelnet40-1024 --data path/to/modelnet40_ply_hdf5 \
        --strangers path/to/labeled_db --choose distance

See `pointset.evaluation.novelty` for the scores.
"""

import dataclasses
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import cyclopts
import numpy as np
import torch

from pointset.commands.printing import print_rows
from pointset.data.arrays import from_arrays
from pointset.data.axes import Axis, UsualUp, turned_up
from pointset.data.dataset import PointSets, load_dataset, load_split
from pointset.data.loading import load_like, normalization_elsewhere
from pointset.data.options import DataOptions
from pointset.errors import PointsetError
from pointset.evaluation.novelty import Measured, measure_strangers, save_means
from pointset.runs import digests
from pointset.training.loading import find_run, load_run
from pointset.training.loop import fit
from pointset.training.recipe import Recipe
from pointset.zoo.models import create_model
from pointset.zoo.pretrained import AGAIN, StrangerScore

VALIDATION = 0.1
"""Share of the training shapes that gives the threshold."""
app = cyclopts.App(name="strangers.py", help=__doc__, result_action="return_value")


@app.command
def lacking(
    model: str,
    *,
    data: str,
    count: int = 10,
    points: int = 100,
    epochs: int = 10,
    seed: int = 0,
    normalize: str = "unit-sphere",
) -> None:
    """Train a model without some of the classes, which it then meets.

    Args:
        model: a name from `pointset zoo`.
        data: a card's name, or a folder.
        count: classes that the model lacks, chosen by the seed.
        points: of each set.
        epochs: of the training.
        seed: of the choice of classes and of the training.
        normalize: of each set.
    """
    train, test = (load_dataset(data, split, points, normalize=normalize) for split in ("train", "test"))
    if not 0 < count < len(train.classes) - 1:
        raise PointsetError(f"count must leave at least two of {len(train.classes)} classes, got {count}")
    chosen = np.random.default_rng(seed).permutation(len(train.classes))[:count].tolist()
    missing = [train.classes[label] for label in sorted(chosen)]
    known, held_out = _without(train, missing).split_validation(VALIDATION, seed)
    network = create_model(model, classes=len(known.classes), seed=seed)
    fitted = fit(network, known, Recipe(epochs=epochs), seed=seed)
    strange = test.subset([index for index, label in enumerate(test.labels.tolist()) if label in chosen])
    print(f"without {', '.join(missing)}")
    _print(measure_strangers(fitted.model, known, held_out, _without(test, missing), {"classes it lacks": strange}))


@app.command
def card(
    model: str,
    *,
    strangers: list[str],
    data: str | None = None,
    split: str = "test",
    up: UsualUp | None = None,
    choose: StrangerScore | None = None,
) -> None:
    """Measure a trained model among strangers; with --choose, write a score and its threshold on the model's card.

    Args:
        model: a trained model's name, or the folder of a run that has a validation split.
        strangers: folders or cards with other shapes; those of a class that the model knows by name are left out.
        data: the data of the model's training; as its run says when not given.
        split: of the strangers.
        up: the axis that points up in the strangers; what is usual for their files when not given. They are
            turned to the model's.
        choose: the score for the card.
    """
    network, description = load_run(model)
    share = description["recipe"]["validation"]
    if not share:
        raise PointsetError(f"{model} has no validation split, which gives the threshold: train with --validation 0.1")
    own, test = (load_like(description["data"], part, data) for part in ("train", "test"))
    known, held_out = own.split_validation(share, description["seed"])
    found = measure_strangers(network, known, held_out, test, dict(_strangers(strangers, split, up, own)))
    _print(found)
    if choose is not None:
        _write(find_run(model), found[choose])


def _without(sets: PointSets, missing: list[str]) -> PointSets:
    """The shapes of the other classes, with labels of these."""
    return _kept(sets, lambda name: name not in missing, sets.up, sets.options.normalize)


def _strangers(given: list[str], split: str, up: UsualUp | None, own: PointSets) -> Iterator[tuple[str, PointSets]]:
    """Shapes of classes that the model does not know, turned and moved to where its own shapes are."""
    known = {name.casefold() for name in own.classes}
    for name in given:
        sets = load_split(name, split, dataclasses.replace(DataOptions.of(own.describe()), up=up))
        if known.issuperset(map(str.casefold, sets.classes)):
            raise PointsetError(f"{name} has no class that the model does not know")
        normalize = normalization_elsewhere(own.describe())
        strange = _kept(sets, lambda name: name.casefold() not in known, own.up, normalize)
        print(f"{sets.name}: {len(strange)} shapes of {', '.join(strange.classes)}")
        yield sets.name, strange


def _kept(sets: PointSets, is_kept: Callable[[str], bool], up: Axis, normalize: str) -> PointSets:
    """The shapes of some classes, with labels of these, turned to an up axis and normalised so."""
    rows = [index for index, label in enumerate(sets.labels.tolist()) if is_kept(sets.classes[label])]
    return from_arrays(
        turned_up(sets.source_pool.points[sets.rows[rows].numpy()], sets.up, up),
        [sets.classes[label] for label in sets.labels[rows].tolist()],
        points=sets.size,
        normalize=normalize,
        names=[sets.names[index] for index in rows],
        split=sets.split,
        up=up,
    )


def _print(found: Mapping[StrangerScore, Measured]) -> None:
    rows = [
        {
            "score": score,
            "strangers": name,
            "AUROC": f"{area:.3f}",
            "strangers found %": f"{100 * one.found[name]:.1f}",
            "test shapes flagged %": f"{100 * one.flagged:.1f}",
            "threshold": f"{one.detector.threshold:.4g}",
        }
        for score, one in found.items()
        for name, area in one.auroc.items()
    ]
    print_rows(rows)


def _write(folder: Path, chosen: Measured) -> None:
    """Put the score on the card in place of an earlier one; TOML's tables end where the next begins."""
    file = folder / "card.toml"
    text = digests.read_text(file, AGAIN)
    parts = ("\n" + text).split("\n[")
    kept = "\n[".join(part for part in parts if not part.startswith("unlike")).strip("\n")
    detector = chosen.detector
    lines = [kept, "", "[unlike]", f'score = "{detector.score}"', f"threshold = {detector.threshold:.6g}"]
    lines += ["[unlike.auroc]", *(f"{json.dumps(name)} = {area:.4f}" for name, area in chosen.auroc.items())]
    digests.write_text(file, "\n".join(lines) + "\n")
    if detector.means is not None:
        save_means(folder, detector.means)
    print(f"{file}: {detector.score}")


def run(tokens: list[str]) -> int:
    """Exit code 2, with one sentence, for a mistake."""
    try:
        app(tokens)
    except PointsetError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(run(sys.argv[1:]))
