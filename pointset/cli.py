"""The command line: a thin face over the library. Nothing heavy is imported until a command needs it."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, CycloptsError, Parameter

from pointset.configuration import DataOptions, ModelOptions, QuickData, QuickModel, QuickRecipe, Recipe
from pointset.errors import PointsetError

MAIN_JOB = ("rff-mean", "rff-max", "rffp-max", "rff-pma", "sab-pma", "isab16-max", "isab16-pma")

DataFlags = Parameter(name="*", group="Data")
ModelFlags = Parameter(name="*", group="Model")
RecipeFlags = Parameter(name="*", group="Recipe")


app = App(
    name="pointset",
    help="Train, compare and look into set networks for 3D shapes. `pointset compare` is a good first command.",
    help_epilogue="Add --debug to any command to see the traceback of an error.",
    version_flags=["--version"],
    default_parameter=Parameter(negative=(), consume_multiple=True),
)
data_app = App(name="data", help="Data sets: what there is, what is known about it, pools of points on disk.")
app.command(data_app)


@data_app.command(name="list")
def data_list(*, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """List the data sets that have a card.

    Args:
        as_json: print JSON.
    """
    from pointset.data.cards import list_cards, load_card

    cards = [load_card(name) for name in list_cards()]
    rows = [
        {
            "name": card.name,
            "kind": card.kind,
            "classes": len(card.classes),
            **card.splits,
            "summary": card.summary,
        }
        for card in cards
    ]
    _print_rows(rows, as_json)


@data_app.command(name="show")
def data_show(name: str, *, as_json: Annotated[bool, Parameter(name="--json")] = False) -> None:
    """Show all that a data set's card says.

    Args:
        name: the card's name.
        as_json: print JSON.
    """
    from dataclasses import asdict

    from pointset.data.cards import load_card

    card = asdict(load_card(name))
    if as_json:
        print(json.dumps(card, indent=2))
        return
    card["download"] = {key: value for key, value in card["download"].items() if value is not None}
    width = max(map(len, card))
    for key, value in card.items():
        if value:
            print(f"{key:{width}}  {_in_words(value, separator=chr(10) + ' ' * (width + 2))}")


@data_app.command(name="build")
def data_build(
    data: str = "shapes10",
    *,
    data_options: Annotated[DataOptions, DataFlags] = DataOptions(),  # noqa: B008 - frozen
) -> None:
    """Sample every mesh of a data set into pools of points on disk, so that later commands start at once.

    Args:
        data: a card's name, or a folder of meshes in class/split/file or class/file layout.
    """
    from pointset.comparison import load_sets

    for part in load_sets(data, data_options):
        shapes, points, _ = part.pool.shape
        print(f"{part.split}: {shapes} shapes in {len(part.classes)} classes, {points} points each")


@app.command
def zoo(
    *,
    classes: int = 40,
    model_options: Annotated[ModelOptions, ModelFlags] = ModelOptions(),  # noqa: B008 - frozen
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """List the models and their sizes.

    Args:
        classes: classes to tell apart.
        as_json: print JSON.
    """
    from pointset.zoo import create_model, list_models

    rows = []
    for name in list_models():
        model = create_model(name, classes=classes, **model_options.as_dict())
        rows.append({"model": name, "parameters": sum(parameter.numel() for parameter in model.parameters())})
    _print_rows(rows, as_json)


@app.command
def train(
    model: str,
    *,
    data: str = "shapes10",
    seed: int = 0,
    run: Path | None = None,
    data_options: Annotated[DataOptions, DataFlags] = DataOptions(),  # noqa: B008 - frozen
    model_options: Annotated[ModelOptions, ModelFlags] = ModelOptions(),  # noqa: B008 - frozen
    recipe: Annotated[Recipe, RecipeFlags] = Recipe(),  # noqa: B008 - frozen
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Train one model. A run that was cut off goes on when the same command is given again.

    Args:
        model: a name from `pointset zoo`, such as isab16-pma.
        data: a card's name, or a folder.
        seed: of weights, order, subsets, augmentation, dropout and the validation split.
        run: folder for checkpoints, history and weights; runs/MODEL when not given.
        as_json: print JSON.
    """
    from pointset.comparison import load_split
    from pointset.training import fit
    from pointset.zoo import check_name, create_model

    check_name(model)
    run = run or Path("runs") / model
    sets = load_split(data, "train", data_options)
    network = create_model(model, classes=len(sets.classes), seed=seed, **model_options.as_dict())
    fitted = fit(network, sets, recipe, seed=seed, run=run)
    last = fitted.history[fitted.best_epoch - 1]
    if as_json:
        print(json.dumps({"run": str(run), "seconds": fitted.seconds, **last}, indent=2))
        return
    print(f"{model} after epoch {last['epoch']}: loss {last['loss']:.3f}, training accuracy {last['accuracy']:.1%}")
    if "validation_accuracy" in last:
        print(f"validation accuracy {last['validation_accuracy']:.1%}")
    print(f"saved in {run}; now: pointset evaluate {run}")


@app.command
def evaluate(
    run: Path,
    *,
    data: str | None = None,
    split: str = "test",
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Test a trained model on sets made like those it was trained on.

    Args:
        run: the folder that `pointset train` wrote.
        data: a card's name or a folder; the data set of the run when not given.
        split: "test" or "train".
        as_json: print JSON.
    """
    from pointset.checkpoints import load_run
    from pointset.comparison import load_like
    from pointset.evaluation import evaluate as evaluate_model
    from pointset.training import find_device

    network, description = load_run(run)
    sets = load_like(description["data"], split, data)
    result = evaluate_model(network.to(find_device("auto")), sets).summary()
    if as_json:
        print(json.dumps(result, indent=2))
        return
    print(f"{result['shapes']} {split} shapes: accuracy {result['accuracy']:.2%}", end=", ")
    print(f"mean-class accuracy {result['mean_class_accuracy']:.2%}, loss {result['loss']:.3f}")
    _print_rows([{"class": name, "accuracy %": f"{100 * value:.1f}"} for name, value in result["per_class"].items()])


@app.command
def compare(
    *,
    models: tuple[str, ...] = MAIN_JOB,
    data: str = "shapes10",
    seeds: tuple[int, ...] = (0, 1, 2),
    out: Path = Path("runs/compare"),
    workers: int | None = None,
    threads: int = 1,
    data_options: Annotated[QuickData, DataFlags] = QuickData(),  # noqa: B008 - frozen
    model_options: Annotated[QuickModel, ModelFlags] = QuickModel(),  # noqa: B008 - frozen
    recipe: Annotated[QuickRecipe, RecipeFlags] = QuickRecipe(),  # noqa: B008 - frozen
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Train and test several models with several seeds under one protocol, and print one table.

    Without options this is the main job: DeepSets against Set Transformers on the embedded shapes10, in minutes.
    A comparison that was cut off goes on when the same command is given again.

    Args:
        models: names from `pointset zoo`.
        data: a card's name, or a folder.
        seeds: one run per model and seed.
        out: folder for the runs, results.csv, results.json and table.md.
        workers: runs at once; one per core, divided by the threads, when not given. Does not change the figures.
        threads: threads of each run.
        as_json: print JSON.
    """
    from pointset.comparison import compare as compare_models

    result = compare_models(
        models,
        data,
        seeds=seeds,
        data_options=data_options,
        model_options=model_options,
        recipe=recipe,
        out=out,
        workers=workers,
        threads=threads,
    )
    if as_json:
        print((out / "results.json").read_text(encoding="utf-8"))
        return
    print(
        f"{data}, {data_options.points} points, {len(seeds)} seeds, {recipe.epochs} epochs, width {model_options.dim}, "
        f"form {model_options.form}; every test shape, last epoch, mean ± standard deviation over seeds"
    )
    print(result.table())
    print(f"saved in {out}: table.md, results.csv, results.json")


def _print_rows(rows: list[dict[str, Any]], as_json: bool = False) -> None:
    from tabulate import tabulate

    print(json.dumps(rows, indent=2) if as_json else tabulate(rows, headers="keys", intfmt=","))


def _in_words(value: Any, separator: str) -> str:
    """Plain text; the separator stands between sentences, a comma between words."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {part:,}" if isinstance(part, int) else f"{key} {part}" for key, part in value.items())
    if isinstance(value, list | tuple):
        sentences = any(len(part) > 30 for part in value)
        return (separator if sentences else ", ").join(value)
    return str(value)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; leave with 0 for success, 2 for what the user can put right, 1 for our own mistakes."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in tokens
    tokens = [token for token in tokens if token != "--debug"]
    try:
        app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except (PointsetError, CycloptsError, OSError) as error:
        if debug:
            raise
        print(f"pointset: {_one_line(error)}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("pointset: interrupted; the same command goes on where it stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if debug:
            raise
        print(
            f"pointset: unexpected {type(error).__name__}: {_one_line(error)} (--debug shows more)",
            file=sys.stderr,
        )
        sys.exit(1)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


if __name__ == "__main__":
    main()
