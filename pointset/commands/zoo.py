"""`pointset zoo`: list the models, untrained and trained."""

from typing import Any

from pointset.commands.models import USUAL
from pointset.commands.options import Json
from pointset.commands.terminal import print_facts, print_json, print_rows
from pointset.configuration import Width
from pointset.errors import PointsetError
from pointset.zoo.listing import kept_rows
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import PretrainedCard, list_pretrained, pretrained_card, pretrained_run

ABILITIES = (("maps", True, "have attention maps"), ("streams", False, "do not stream"))
SIZES = ("64", "100", "256", "1024")
"""Points per test set for which the list of trained models shows the accuracy."""


def zoo(
    name: str | None = None,
    /,
    *,
    pretrained: bool = False,
    dim: Width = ModelOptions.dim,
    as_json: Json = False,
) -> None:
    """List the models with their sizes and abilities, or the trained models of the package.

    Every encoder works with every pooling, `+` joins two poolings (isab16-max+pma), and you can choose the numbers
    (isab32, pma4). Models that stream can read clouds larger than memory, in pieces.

    Example: `pointset zoo --pretrained`

    Args:
        name: A trained model: show its card, with its terms of use.
        pretrained: List the trained models and their accuracies.
        dim: Width d of every layer, for the numbers of parameters.
    """
    if name is not None:
        _show(name, as_json)
    elif pretrained:
        _list_trained(as_json)
    else:
        _list(dim, as_json)


def _list(dim: int, as_json: bool) -> None:
    options = ModelOptions(dim=dim)
    rows = kept_rows() if options == ModelOptions() else None
    if rows is None:
        from pointset.zoo.abilities import describe_models

        rows = describe_models(options=options)
    if as_json:
        print_json(rows)
        return
    pairs = {tuple(row["model"].split("-", 1)): row for row in rows if "-" in row["model"]}
    encoders, poolings = (list(dict.fromkeys(parts)) for parts in zip(*pairs, strict=True))
    print("parameters in thousands, by encoder and pooling:")
    print_rows([{"": f"-{two}", **{f"{one}-": _size(pairs.get((one, two))) for one in encoders}} for two in poolings])
    alone = [row for row in rows if "-" not in row["model"]]
    print("other models, for comparison:", ", ".join(f"{row['model']} ({_size(row)})" for row in alone))
    for ability, wanted, words in ABILITIES:
        print(f"{words}: {', '.join(_names([pair for pair in pairs if pairs[pair][ability] is wanted], list(pairs)))}")
    print("`pointset zoo --pretrained` lists trained models; --json prints all details")


def _size(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['parameters'] / 1000:,.0f}"


def _names(chosen: list[tuple[str, ...]], pairs: list[tuple[str, ...]]) -> list[str]:
    """The encoders and poolings that are chosen with every partner, and the pairs that are left."""
    parts = [(position, part) for position in (0, 1) for part in dict.fromkeys(pair[position] for pair in pairs)]
    whole = [(n, part) for n, part in parts if all(pair in chosen for pair in pairs if pair[n] == part)]
    left = [pair for pair in chosen if not any(pair[position] == part for position, part in whole)]
    return [part for _, part in whole] + ["-".join(pair) for pair in left]


def _list_trained(as_json: bool) -> None:
    cards = {name: pretrained_card(name) for name in list_pretrained()}
    if as_json:
        print_json([{"model": name, **_plain(card)} for name, card in cards.items()])
    elif not cards:
        raise PointsetError("this package contains no trained model: train one with `pointset train`")
    else:
        print_rows([_row(name, card) for name, card in cards.items()])
        print("test accuracy in %, by points per set; for details: pointset zoo --pretrained NAME")
        if USUAL in cards:
            print(f"classify, attend, evaluate and export use {USUAL} unless you give --model")


def _row(name: str, card: PretrainedCard) -> dict[str, Any]:
    """One line of the list, without a number for the sizes that the card lacks."""
    tested = {size: f"{100 * card.accuracy[size].accuracy:.1f}" if size in card.accuracy else "" for size in SIZES}
    return {"model": name, "parameters": card.parameters, **tested, "data": card.data}


def _show(name: str, as_json: bool) -> None:
    card, run = pretrained_card(name), pretrained_run(name)
    facts = {"name": name, **_plain(card), **{key: run.get(key) for key in ("model", "recipe", "seed", "commit")}}
    facts |= {f"data_{key}": value for key, value in run.get("data", {}).items()}
    if as_json:
        print_json(facts)
        return
    facts["accuracy"] = {
        f"{size} points": f"{100 * accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        for size, (accuracy, low, high) in card.accuracy.items()
    }
    if card.trust is not None:
        facts["trust"] = {
            name: f"AUROC of errors {area:.3f}, calibration error {100 * card.trust.calibration_error[name]:.1f} %"
            for name, area in card.trust.auroc.items()
        }
    print_facts({key: value for key, value in facts.items() if value not in (None, {}, [])})


def _plain(card: PretrainedCard) -> dict[str, Any]:
    return card.as_dict() | {"accuracy": {size: tested._asdict() for size, tested in card.accuracy.items()}}
