"""`pointset train` and `pointset evaluate`: train and test one model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pointset.commands import quick
from pointset.commands.models import Model, load_model, say_usual
from pointset.commands.options import DataFlags, Json, ModelFlags, RecipeFlags
from pointset.commands.printing import print_json, print_rows
from pointset.data.axes import UsualUp
from pointset.errors import PointsetError
from pointset.zoo.options import ModelOptions

if TYPE_CHECKING:
    from torch import nn

    from pointset.evaluation import Evaluation


def train(
    model: str,
    *,
    data: str = "shapes10",
    seed: int = 0,
    run: Path | None = None,
    log: Literal["tensorboard"] | None = None,
    data_options: Annotated[quick.QuickData, DataFlags] = quick.DATA,
    model_options: Annotated[quick.QuickModel, ModelFlags] = quick.MODEL,
    recipe: Annotated[quick.QuickRecipe, RecipeFlags] = quick.RECIPE,
    as_json: Json = False,
) -> None:
    """Train one model. The same command continues an interrupted run; with more --epochs it extends a finished one.

    The defaults are those of `pointset compare` without a file, so the same model gives the same run as in its table:
    on shapes10, training sets have 0.375 of the points (see --points-share); on other data, all of them.
    For several GPUs or processes: `torchrun --nproc-per-node N -m -- pointset.cli train ...`, or `accelerate launch`.

    Example: `pointset train isab16-pma --data path/to/parts --points 256 --validation 0.1 --run runs/parts`

    Args:
        model: A name from `pointset zoo`, such as isab16-pma.
        data: Name of a card, or a folder.
        seed: Seed for weights, order, subsets, augmentation, dropout and the validation split.
        run: Folder for checkpoints, history and weights; default: runs/MODEL.
        log: "tensorboard" also writes the history for TensorBoard into the run's folder (view it with
            `tensorboard --logdir runs`); needs the package tensorboard.
        as_json: Print JSON.
    """
    from pointset.data.dataset import load_split
    from pointset.training.distributed import is_main
    from pointset.training.events import EventLog
    from pointset.training.loop import fit
    from pointset.training.sizes import sizes_in_words
    from pointset.zoo.models import create_model

    _check_options(model, model_options)
    data_options, model_options, recipe = quick.plain(data, data_options, model_options, recipe)
    run = run or Path("runs") / model
    events = None if log is None else EventLog(run)
    sets = load_split(data, "train", data_options, progress=is_main())
    options = {"inputs": sets.inputs, "seed": seed, **model_options.as_dict()}
    network = create_model(model, classes=len(sets.classes), **options)
    fitted = fit(network, sets, recipe, seed=seed, run=run, on_epoch=events)
    if not is_main():
        return
    if events is not None:
        events.close(fitted.history)
    last = fitted.history[fitted.best_epoch - 1]
    if as_json:
        print_json({"run": str(run), "seconds": fitted.seconds, **last})
        return
    print(f"{model} after epoch {last['epoch']}: loss {last['loss']:.3f}, training accuracy {last['accuracy']:.1%}")
    if "validation_accuracy" in last:
        print(f"validation accuracy {last['validation_accuracy']:.1%}")
    if sizes := sizes_in_words(recipe):
        print(f"trained on sets of {sizes}")
    print(f"saved in {run}; next: pointset evaluate --model {run}")


def evaluate(
    *,
    model: Model = None,
    data: str | None = None,
    split: str = "test",
    points: int | None = None,
    on_error: Literal["raise", "skip"] | None = None,
    up: UsualUp = "auto",
    predictions: Path | None = None,
    calibrate: bool = False,
    objective: Literal["log-loss", "ece"] = "log-loss",
    as_json: Json = False,
) -> None:
    """Test a trained model, on sets that are prepared as in its run.

    Example: `pointset evaluate --model runs/parts --calibrate --predictions predictions.csv`

    Args:
        data: Name of a card, or a folder; default: the dataset of the run.
        split: "test" or "train".
        points: Points per set; default: as in the run (not its --train-points or --points-share).
        on_error: "skip" continues without shapes that cannot be used; default: as in training.
        up: The axis that points up in the data; auto assumes that of the run for its own data, for another card the
            card's, and for other files what `classify` assumes. Shapes with another axis are rotated.
        predictions: File for the predictions (*.csv, *.json or *.parquet): name, true class, the five most likely
            classes with their probabilities at the temperature of --calibrate or of the model's card, entropy in nats.
        calibrate: Also fit a temperature on the run's validation split; it changes probabilities, not accuracy.
        objective: What --calibrate minimises: the log loss, or the expected calibration error.
        as_json: Print JSON.
    """
    from pointset.data.loading import load_like
    from pointset.evaluation import evaluate as evaluate_model
    from pointset.evaluation.guesses import check_suffix, guesses_of, write_guesses
    from pointset.evaluation.strangers import last_inputs
    from pointset.training.devices import find_device

    if predictions is not None:
        check_suffix(predictions)
    trained = load_model(model)
    network, description = trained.network, trained.description
    sets = load_like(description["data"], split, data, on_error, points, up)
    with last_inputs(network) as rows:
        evaluation = evaluate_model(network.to(find_device("auto")), sets)
    result = {"model": trained.name} | evaluation.summary()
    if left_out := sets.describe().get("left_out"):
        result["left_out"] = left_out
    if calibrate:
        result |= _calibrated(network, description, evaluation, objective)
    if predictions is not None:
        about = {"model": trained.name, "temperature": result.get("temperature", trained.temperature)}
        found = trained.detector
        strange = None if found is None else (found.scores(evaluation.logits, rows), found.threshold)
        guesses = guesses_of(evaluation, sets.sizes, temperature=about["temperature"], strangeness=strange)
        write_guesses(predictions, guesses, about | {"classes": evaluation.classes})
    if as_json:
        print_json(result)
        return
    say_usual(model)
    print(f"{result['shapes']} {split} shapes: accuracy {result['accuracy']:.2%}", end=", ")
    print(f"mean-class accuracy {result['mean_class_accuracy']:.2%}, loss {result['loss']:.3f}")
    _print_calibration(result)
    print_rows([{"class": name, "accuracy %": f"{100 * value:.1f}"} for name, value in result["per_class"].items()])
    if predictions is not None:
        print(f"predictions saved in {predictions}")


CALIBRATION = ("loss", "brier", "calibration_error", "calibration_error_equal_mass")


def _calibrated(
    network: "nn.Module",
    description: dict[str, Any],
    evaluation: "Evaluation",
    objective: Literal["log-loss", "ece"],
) -> dict[str, Any]:
    from pointset.evaluation.temperature import validation_temperature

    temperature = validation_temperature(network, description, objective)
    scaled = evaluation.at_temperature(temperature).summary()
    return {"temperature": temperature, "calibrated": {name: scaled[name] for name in ("accuracy", *CALIBRATION)}}


def _print_calibration(result: dict[str, Any]) -> None:
    columns = {"as trained": result}
    if "temperature" in result:
        columns[f"at temperature {result['temperature']:.3f}"] = result["calibrated"]
    names = ("log loss", "Brier score", "calibration error, equal width", "calibration error, equal mass")
    print_rows(
        [
            {"": name, **{head: f"{metrics[key]:.4f}" for head, metrics in columns.items()}}
            for name, key in zip(names, CALIBRATION, strict=True)
        ]
    )


def _check_options(model: str, options: ModelOptions) -> None:
    """Refuse options that the model does not use, where they differ from their defaults."""
    from pointset.zoo.names import used_options

    usual = vars(quick.MODEL)
    given = [name for name, value in vars(options).items() if value != usual[name]]
    used = used_options(model)
    for name in given:
        if name not in used:
            raise PointsetError(f"{model} does not use {name}: leave it out; it uses {', '.join(sorted(used))}")
