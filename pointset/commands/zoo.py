"""`pointset zoo`: list the models, untrained and trained."""

import json
import os
from typing import Any

from pointset.commands.terminal import Result
from pointset.commands.trained import USUAL
from pointset.zoo.pretrained import FOLDER, PretrainedCard, find_run, list_pretrained, pretrained_card, run_description

LISTING = FOLDER.parent / "listing.json"
"""Saved output of `describe_models`, which needs torch and builds every model. After adding a module, run `python
scripts/zoo_listing.py` to write the output again. A test checks this."""
LISTED_SIZES = ("64", "100", "256", "1024")
"""Numbers of points per test set for which the list of trained models shows the accuracy."""


def zoo(name: str | None = None, /, *, pretrained: bool = False) -> Result:
    """List the models with their numbers of parameters, or the trained models of the package.

    Every encoder works with every pooling. `+` joins two poolings (isab16-max+pma). You can change the numbers of
    inducing points (isab32) and seeds (pma4).

    Example: `pointset zoo --pretrained`

    Args:
        name: Name of a trained model, to show its card with the terms of use.
        pretrained: List the trained models and their accuracies.
    """
    if name is not None:
        return _show(name)
    return _list_trained() if pretrained else _list()


def _list() -> Result:
    if os.environ.get("POINTSET_MODULES"):
        from pointset.zoo.abilities import describe_models

        rows = describe_models()
    else:
        rows = json.loads(LISTING.read_text(encoding="utf-8"))
    pairs = {tuple(row["model"].split("-", 1)): row for row in rows if "-" in row["model"]}
    encoders, poolings = (list(dict.fromkeys(parts)) for parts in zip(*pairs, strict=True))
    alone = ", ".join(f"{row['model']} ({_size(row)})" for row in rows if "-" not in row["model"])
    return Result(
        rows,
        "parameters in thousands, by encoder and pooling:",
        [{"": f"-{two}", **{f"{one}-": _size(pairs.get((one, two))) for one in encoders}} for two in poolings],
        f"other models, for comparison: {alone}",
        "`pointset zoo --pretrained` lists trained models; --json prints all details",
    )


def _size(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['parameters'] / 1000:,.0f}"


def _list_trained() -> Result:
    cards = {name: pretrained_card(name) for name in list_pretrained()}
    return Result(
        [{"model": name, **_plain(card)} for name, card in cards.items()],
        [_row(name, card) for name, card in cards.items()],
        "64 to 1024: test accuracy in % with this number of points; local features are computed from all 1,024 points",
        "if a model warns that a cloud has too few points, a model without local features is more accurate",
        "support: median number of points (of 1,024) with non-zero weight; the logits do not depend on other points",
        "for details: pointset zoo --pretrained NAME",
        *([f"classify, attend, evaluate and export use {USUAL} unless you give --model"] if USUAL in cards else []),
    )


def _row(name: str, card: PretrainedCard) -> dict[str, Any]:
    """Return one row of the list. Sizes that are not in the card have no number."""
    tested = {
        size: f"{100 * card.accuracy[size].accuracy:.1f}" if size in card.accuracy else "" for size in LISTED_SIZES
    }
    known = run_description(find_run(name))["model"]["options"].get("local_features", "none")
    facts = {"support": card.deciding or "all", "data": card.data}
    return {"model": name, "parameters": card.parameters, "local_features": known, **tested, **facts}


def _show(name: str) -> Result:
    card, run = pretrained_card(name), run_description(find_run(name))
    facts = {"name": name, **_plain(card), **{key: run.get(key) for key in ("model", "recipe", "seed", "commit")}}
    facts |= {f"data_{key}": value for key, value in run.get("data", {}).items()}
    accuracies = {
        f"{size} points": f"{100 * accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        for size, (accuracy, low, high) in card.accuracy.items()
    }
    shares = {
        key: {name: f"{100 * share:.1f} %" for name, share in getattr(card, key).items()}
        for key in ("low_confidence", "calibration_error")
    }
    shown = {**facts, "accuracy": accuracies, **shares}
    return Result(facts, {key: value for key, value in shown.items() if value not in (None, {}, [])})


def _plain(card: PretrainedCard) -> dict[str, Any]:
    return card.as_dict() | {"accuracy": {size: tested._asdict() for size, tested in card.accuracy.items()}}
