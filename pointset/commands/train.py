"""`pointset train`: train a model by name, or select and train the best one within a budget."""

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

import pointset
from pointset.commands.flags import Chosen, DataFlags, Given, ModelFlags, RecipeFlags, quick_options
from pointset.commands.terminal import Result
from pointset.configuration import COMMON
from pointset.data.options import DataOptions
from pointset.errors import PointsetError, counted, one_line
from pointset.runs.atomic import check_folder_path
from pointset.runs.progress import write_line
from pointset.training.recipe import Recipe
from pointset.zoo.options import ModelOptions
from pointset.zoo.pretrained import trained_name

if TYPE_CHECKING:
    from torch import nn

    from pointset.data.point_sets import PointSets
    from pointset.training.out_of_fold import Candidate
    from pointset.training.selection import ModelSelection

    Training = tuple[nn.Module, PointSets, Recipe]

NO_TEST = "the data has no test split: give other shapes to `evaluate` with --data"


def train(
    model: Annotated[str | None, COMMON] = None,
    *,
    data: Annotated[str | None, COMMON] = None,
    pretrained: Annotated[str | None, COMMON] = None,
    budget: Annotated[timedelta, COMMON, Meta(description="a time such as 90s, 2m or 1h")] = timedelta(minutes=2),
    run: Annotated[Path | None, COMMON] = None,
    seed: int = 0,
    data_options: Annotated[DataOptions, DataFlags] = DataOptions(),
    model_options: Annotated[ModelOptions, ModelFlags] = ModelOptions(),
    recipe: Annotated[Recipe, RecipeFlags] = Recipe(),
    given: Given,
) -> Result | None:
    """Train MODEL, or without MODEL select and train the best model within --budget.

    Without MODEL, three candidates are compared by cross-validation on the training shapes: (1) a support vector
    machine on surface features and embeddings of pretrained networks, (2) a fine-tuned network, (3) the ensemble of (1)
    and (2). The ensemble is selected, unless the log loss of (1) or (2) is smaller by more than one standard error.

    If interrupted, run the same command again to continue. On shapes10, the defaults are those of `pointset compare`:
    each training set has 48 of the 128 points of a shape (see --train-points), and a model gives the same run as in the
    table of `compare`. On other data, training uses all points, and `compare` has another recipe.
    To train on several GPUs, use `torchrun --nproc-per-node N -m -- pointset train ...` or `accelerate launch`.

    Example: `pointset train isab16-pma --data path/to/parts --points 256 --validation 0.1 --run runs/parts`

    Args:
        model: Name of a model from `pointset zoo`, such as isab16-pma, or of a baseline, such as embedding-svm.
        data: Name of a dataset (see `pointset data list`), or a folder; default with MODEL: shapes10.
        pretrained: Fine-tune the pretrained MODEL with this tag, such as modelnet40-1024, or the MODEL in this run
            folder. The defaults of --points and --normalize are then those of its training.
        budget: Without MODEL: CPU time for model selection and training, such as 90s, 2m or 1h.
        run: Folder for checkpoints, history and weights; default: runs/MODEL, or runs/best if no MODEL is given.
        seed: Seed for initial weights, order of shapes, subsets of points, augmentation, dropout and validation split.
    """
    from pointset.data.leakage import divided_groups, repeated_files
    from pointset.data.reload import has_test_split
    from pointset.training.processes import is_main

    if data is None and model is None:
        raise PointsetError("train needs --data with your shapes, or the name of a model, such as isab16-pma")
    chosen = Chosen.by(given, data_options, model_options, recipe)
    data = data or "shapes10"
    if model is None:
        if own := ["pretrained"] * bool(pretrained) + [*chosen.model, *chosen.recipe]:  # selection sets these itself
            raise PointsetError(f"{own[0]} needs the name of a model: write pointset train MODEL, such as isab16-pma")
        if budget <= timedelta(0):
            raise PointsetError("--budget must be more than 0s: give a time such as 90s, 2m or 1h")
        return _train_best(data, chosen.sets, budget.total_seconds(), seed, run or Path("runs") / "best")
    if "budget" in given:
        raise PointsetError("--budget is for model selection: leave out --budget, or the name of the model")
    run, trained = run or Path("runs") / model, trained_name(model, pretrained)
    network, sets, recipe = (
        _fine_tuned(model, pretrained, trained, data, chosen, seed) if trained else _new(model, data, chosen, seed, run)
    )
    fitted = pointset.fit(network, sets, recipe, seed=seed, run=run)
    if not is_main():
        return None
    last = fitted.history[fitted.best_epoch - 1]
    text = [f"{model} after epoch {last['epoch']}: loss {last['loss']:.3f}, training accuracy {last['accuracy']:.1%}"]
    if "validation_accuracy" in last:
        text.append(f"validation accuracy {last['validation_accuracy']:.1%}")
    if recipe.ordered:
        text.append(f"classes in order: {one_line(' < '.join(sets.classes), 400)}")
    if sizes := recipe.sizes_in_words:
        text.append(f"trained on sets of {sizes}")
    evaluate = f"next: pointset evaluate --model {shlex.quote(str(run))}"
    text.append(f"saved in {run}; {evaluate if has_test_split(sets) else NO_TEST}")
    text += [*repeated_files(sets), *divided_groups(sets)]
    return Result({"run": str(run), "seconds": fitted.seconds, **last, "sentences": text}, *text)


def _new(model: str, data: str, chosen: Chosen, seed: int, run: Path) -> "Training":
    """Return a new model (by name), its training sets and the recipe, with the defaults of quick.toml."""
    from pointset.data.dataset import check_data, load_split
    from pointset.training.processes import is_main
    from pointset.zoo.models import create_for
    from pointset.zoo.names import used_options

    used, options = used_options(model), quick_options(data).changed(*chosen)
    if unused := [name for name in chosen.model if name not in used]:
        raise PointsetError(f"{model} does not use {unused[0]}: leave it out; it uses {', '.join(sorted(used))}")
    check_data(data, options.sets)
    check_folder_path(run)
    sets = load_split(data, "train", options.sets, progress=is_main())
    return create_for(sets, model, options.model, seed=seed), sets, options.recipe


def _fine_tuned(
    model: str, pretrained: str | None, trained: str | Path, data: str, chosen: Chosen, seed: int
) -> "Training":
    """Return a trained model for the classes of the data, its training sets, and the recipe for fine-tuning."""
    from pointset.data.dataset import load_split
    from pointset.training.fine_tuning import transfer_recipe
    from pointset.training.processes import is_main
    from pointset.zoo.models import create_for

    for field in chosen.model:
        raise PointsetError(f"{field} is fixed by the trained {model}: leave it out, or leave out --pretrained")
    preparation = pointset.load_model(trained).preparation
    usual = DataOptions.from_dict({"points": preparation.points, "normalize": preparation.normalize})
    sets = load_split(data, "train", usual.changed(chosen.sets), progress=is_main())
    network = create_for(sets, model, seed=seed, pretrained=pretrained)
    return network, sets, transfer_recipe(sets, **chosen.recipe)


def _train_best(data: str, chosen: dict[str, Any], budget: float, seed: int, run: Path) -> Result:
    """Select and train the best classifier within a budget, on sets with the chosen options."""
    from pointset.data.dataset import check_data, load_split
    from pointset.data.leakage import divided_groups, repeated_files
    from pointset.data.reload import has_test_split
    from pointset.training.selection import refuse_other_run, select_model

    options = DataOptions(points=1024, normalize="center-standardize").changed(chosen)
    check_data(data, options)
    refuse_other_run(run)
    sets = load_split(data, "train", options, fewer="points" not in chosen)
    best = select_model(sets, budget=budget, seed=seed, run=run, on_candidate=_show)
    tested, trained = has_test_split(sets), f"--model {shlex.quote(str(run))}"
    commands = [f"evaluate {trained}"] * tested + [f"classify path/to/new {trained}"]
    commands += [f"attend FILE {trained}"] * (run / "network").exists()
    sentences = [
        *_group_lines(best, sets),
        *best.sentences,
        *_of_modelnet(sets.classes),
        *repeated_files(sets),
        *divided_groups(sets),
        *([] if tested else [NO_TEST]),
    ]
    about = {
        "run": str(run),
        "model": best.name,
        "reason": best.reason,
        "candidates": [dataclasses.asdict(candidate) for candidate in best.candidates],
        "groups": best.grouping.count,
        "groups_by": best.grouping.origin,
        "classes": len(sets.classes),
        "sentences": sentences,
    }
    held_out = f"{'groups of ' if best.grouping else ''}training shapes that were held out"
    return Result(
        about,
        f"{len(sets):,} shapes of {len(sets.classes)} classes; accuracy on {held_out}:",
        [_row(candidate) for candidate in best.candidates],
        *sentences,
        f"* selected ({best.reason}), and fitted to all {len(sets):,} shapes: saved in {run}. Next:",
        *(f"  pointset {command}" for command in commands),
    )


def _row(candidate: "Candidate") -> dict[str, Any]:
    """Return a candidate as a row of the table."""
    numbers = (candidate.accuracy, candidate.low, candidate.high, candidate.mean_class_accuracy)
    accuracy, low, high, of_classes = (f"{100 * number:.1f}" for number in numbers)
    shown = {"accuracy %": accuracy, "95 % interval": f"{low} to {high}", "mean-class accuracy %": of_classes}
    if not candidate.tested:
        shown = dict.fromkeys(shown, "")
    loss = "" if candidate.log_loss is None else f"{candidate.log_loss:.2f}"
    row = {"candidate": candidate.name + " *" * candidate.chosen, **shown, "log loss": loss}
    return row | {"held out": candidate.tested, "CPU seconds": f"{candidate.seconds:.0f}"}


def _show(candidate: "Candidate") -> None:
    """Print the accuracy of a candidate as soon as it is known."""
    loss = "" if candidate.log_loss is None else f"log loss {candidate.log_loss:.2f}, "
    share = f"{100 * candidate.accuracy:5.1f} % of {counted(candidate.tested, 'held-out shape')}"
    if not candidate.tested:
        share = "fitted, and not evaluated: no shape can be held out"
    write_line(f"{candidate.name:8} {share}, {loss}{candidate.seconds:.0f} CPU seconds")


def _group_lines(best: "ModelSelection", sets: "PointSets") -> Iterator[str]:
    """Yield a sentence on the groups or, if file names end in numbers and may show one object, on --groups."""
    from pointset.data.catalogue.cards import list_cards
    from pointset.data.groups import NO_GROUPS, WHAT_GROUPS_TAKES, end_in_numbers

    if best.grouping:
        off = f"; --groups {NO_GROUPS} ignores them" * (best.grouping.origin == "names")
        yield f"{best.grouping}: the accuracy is that of groups without training shapes{off}"
    elif (
        not sets.grouping
        and sets.options.groups is None
        and sets.source not in list_cards()
        and end_in_numbers(sets.names)
    ):
        yield (
            "shapes are held out one by one: if several files show one object, the accuracy is too high; give --groups "
            f"{WHAT_GROUPS_TAKES}"
        )


def _of_modelnet(classes: Sequence[str]) -> Iterator[str]:
    """Yield a warning if the class names suggest shapes of ModelNet40, on which the networks were pretrained."""
    from pointset.data.catalogue.cards import load_card

    known = {name.casefold() for name in load_card("modelnet40").classes}
    shared = sum(name.casefold().replace(" ", "_").replace("-", "_") in known for name in classes)
    if 2 * shared >= len(classes):
        yield (
            f"{shared} of {len(classes)} classes are classes of ModelNet40, on which the networks were pretrained: if "
            "your shapes are from it, the accuracy is too high"
        )
