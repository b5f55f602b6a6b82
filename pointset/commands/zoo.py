"""`pointset zoo`: the models that there are, untrained and trained."""

from typing import Annotated, Any

from pointset.commands.models import USUAL
from pointset.commands.options import Json, ModelFlags
from pointset.commands.printing import in_words, print_json, print_rows
from pointset.configuration import Width, check
from pointset.errors import PointsetError
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import PretrainedCard, list_pretrained, pretrained_card, pretrained_run

SIZES = ("64", "100", "256", "1024")
"""Points of test sets whose accuracies the list of trained models shows."""


def zoo(
    name: str | None = None,
    /,
    *,
    pretrained: bool = False,
    classes: int = 40,
    model_options: Annotated[ModelOptions, ModelFlags] = ModelOptions(),  # noqa: B008 - frozen
    as_json: Json = False,
) -> None:
    """List the models, their sizes, and what they can do; or the trained models that come with the package.

    Models with `maps` have attention to look at; those that stream take clouds larger than memory, in pieces.

    Args:
        name: a trained model, to show all that is known of it, its terms of use among them.
        pretrained: list the trained models and their accuracies.
        classes: classes to tell apart.
        as_json: print JSON.
    """
    if name is not None:
        _show(name, as_json)
    elif pretrained:
        _list_trained(as_json)
    else:
        _list(classes, model_options, as_json)


def _list(classes: int, options: ModelOptions, as_json: bool) -> None:
    from pointset.zoo.models import abilities, create_model
    from pointset.zoo.names import list_models

    check("classes", classes, Width)
    rows = []
    for name in list_models():
        model = create_model(name, classes=classes, **options.as_dict())
        parameters = sum(parameter.numel() for parameter in model.parameters())
        rows.append({"model": name, "parameters": parameters, **abilities(model)})
    shown = [{key: "yes" if value is True else value or "" for key, value in row.items()} for row in rows]
    print_rows(rows if as_json else shown, as_json)


def _list_trained(as_json: bool) -> None:
    cards = {name: pretrained_card(name) for name in list_pretrained()}
    if as_json:
        print_json([{"model": name, **_plain(card)} for name, card in cards.items()])
    elif not cards:
        raise PointsetError("no trained model comes with this package: train one with `pointset train`")
    else:
        print_rows([_row(name, card) for name, card in cards.items()])
        print("accuracy in % on the test split, by points of a set; all of one: pointset zoo --pretrained NAME")
        if USUAL in cards:
            print(f"without --model, classify, attend, evaluate and export take {USUAL}")


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
    if card.unlike is not None:
        told = [f"{value:.3f} of {name}" for name, value in card.unlike.auroc.items()]
        found["unlike"] = f"{card.unlike.score} above {card.unlike.threshold:.3g}; AUROC {', '.join(told) or 'unknown'}"
    width = max(map(len, found))
    for key, value in found.items():
        if value not in (None, {}, []):
            print(f"{key:{width}}  {in_words(value, separator=chr(10) + ' ' * (width + 2))}")


def _share(accuracy: float, low: float, high: float) -> str:
    return f"{100 * accuracy:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _plain(card: PretrainedCard) -> dict[str, Any]:
    return card.as_dict() | {"accuracy": {size: tested._asdict() for size, tested in card.accuracy.items()}}
