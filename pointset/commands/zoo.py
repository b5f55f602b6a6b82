"""`pointset zoo`: list the models, untrained and trained."""

from typing import Annotated, Any

from pointset.commands.models import USUAL
from pointset.commands.options import Json, option_flags
from pointset.commands.printing import in_words, print_json, print_rows
from pointset.configuration import Width, check
from pointset.errors import PointsetError
from pointset.zoo.listing import CLASSES, kept_rows
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
    classes: int = CLASSES,
    model_options: Annotated[ModelOptions, option_flags("Model", 3)] = ModelOptions(),
    as_json: Json = False,
) -> None:
    """List the models with their sizes and abilities, or the trained models of the package.

    Every encoder works with every pooling, `+` joins two poolings (isab16-max+pma), and you can choose the numbers
    (isab32, pma4). Models that stream can read clouds larger than memory, in pieces.

    Example: `pointset zoo --pretrained`

    Args:
        name: A trained model: show its card, with its terms of use.
        pretrained: List the trained models and their accuracies.
        classes: Number of classes.
        as_json: Print JSON.
    """
    if name is not None:
        _show(name, as_json)
    elif pretrained:
        _list_trained(as_json)
    else:
        _list(classes, model_options, as_json)


def _list(classes: int, options: ModelOptions, as_json: bool) -> None:
    check("classes", classes, Width)
    rows = kept_rows() if (classes, options) == (CLASSES, ModelOptions()) else None
    if rows is None:
        from pointset.zoo.models import describe_models

        rows = describe_models(classes, options)
    if as_json:
        print_json(rows)
        return
    pairs = {tuple(row["model"].split("-", 1)): row for row in rows if "-" in row["model"]}
    encoders, poolings = (list(dict.fromkeys(parts)) for parts in zip(*pairs, strict=True))
    print("parameters in thousands, by encoder and pooling:")
    print_rows([{"": f"-{two}", **{f"{one}-": _size(pairs.get((one, two))) for one in encoders}} for two in poolings])
    alone = [row for row in rows if "-" not in row["model"]]
    print("other models, for comparison:", ", ".join(f"{row['model']} ({_size(row)})" for row in alone))
    for ability, wanted, told in ABILITIES:
        print(f"{told}: {', '.join(_parts([pair for pair in pairs if pairs[pair][ability] is wanted], list(pairs)))}")
    print("`pointset zoo --pretrained` lists trained models; --json prints all details")


def _size(row: dict[str, Any] | None) -> str:
    return "" if row is None else f"{row['parameters'] / 1000:,.0f}"


def _parts(chosen: list[tuple[str, ...]], pairs: list[tuple[str, ...]]) -> list[str]:
    """The encoders and poolings that are chosen with every partner, and what pairs are left."""
    known = [(place, part) for place in (0, 1) for part in dict.fromkeys(pair[place] for pair in pairs)]
    whole = [(place, part) for place, part in known if all(pair in chosen for pair in pairs if pair[place] == part)]
    left = [pair for pair in chosen if not any(pair[place] == part for place, part in whole)]
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
    """One line of the list; no number where the card has none for this size."""
    found = {size: card.accuracy.get(size) for size in SIZES}
    return {
        "model": name,
        "parameters": card.parameters,
        **{size: f"{100 * tested.accuracy:.1f}" if tested else "" for size, tested in found.items()},
        "data": card.data,
    }


def _show(name: str, as_json: bool) -> None:
    card, run = pretrained_card(name), pretrained_run(name)
    found = {"name": name, **_plain(card)}
    found |= {key: run.get(key) for key in ("model", "recipe", "seed", "commit")}
    found |= {f"data_{key}": value for key, value in run.get("data", {}).items()}
    if as_json:
        print_json(found)
        return
    found["accuracy"] = {f"{size} points": _share(*tested) for size, tested in card.accuracy.items()}
    if card.trust is not None:
        found["trust"] = {
            name: f"AUROC of errors {area:.3f}, calibration error {100 * card.trust.calibration_error[name]:.1f} %"
            for name, area in card.trust.auroc.items()
        }
    width = max(map(len, found))
    for key, value in found.items():
        if value not in (None, {}, []):
            print(f"{key:{width}}  {in_words(value, separator=chr(10) + ' ' * (width + 2))}")


def _share(accuracy: float, low: float, high: float) -> str:
    return f"{100 * accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _plain(card: PretrainedCard) -> dict[str, Any]:
    return card.as_dict() | {"accuracy": {size: tested._asdict() for size, tested in card.accuracy.items()}}
