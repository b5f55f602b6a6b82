"""`pointset predict`: predict numbers, with intervals, for one or many shapes."""

from pathlib import Path
from time import perf_counter
from typing import Literal

from pointset.commands.classify import Table
from pointset.commands.models import Model, load_model, usable
from pointset.commands.options import Json, KeepOutliers
from pointset.commands.terminal import print_json, print_rows
from pointset.data.axes import UsualUp
from pointset.errors import PointsetError, escaped
from pointset.runs.atomic import check_writable, checked_suffix

FEW = 5
"""Above this number of shapes, progress is shown."""


def predict(
    files: list[Path],
    *,
    model: Model,
    output: Table = None,
    level: float = 0.9,
    on_error: Literal["raise", "skip"] = "raise",
    up: UsualUp = "auto",
    keep_outliers: KeepOutliers = False,
    as_json: Json = False,
) -> None:
    """Predict the numbers that a model was trained for, such as mass, for files of shapes or all files in a folder.

    Each number has an interval that contains the true value for --level of the shapes, if they are like those of
    training (split conformal prediction). Shapes must be in the units of the training shapes.

    Example: `pointset predict path/to/new --model runs/best -o masses.csv`

    Args:
        files: Meshes (OFF, OBJ, PLY, STL, GLB), point clouds (.npy, .npz, .ply, .pcd, .xyz, .csv), and folders of them.
        output: File for the predictions (*.csv or *.json): name; for each target its value and the ends of
            the interval; number of points.
        level: Share of shapes whose true value is in the interval.
        on_error: How to handle files that cannot be used: "raise" tries all files, then reports the faulty ones and
            writes nothing; "skip" continues without them.
        up: The axis that points up in the files; see `classify`.
        as_json: Print JSON.
    """
    from pointset.evaluation.files import estimate_files, in_folders
    from pointset.evaluation.shape_predictions import SUFFIXES, write_guesses
    from pointset.runs.progress import followed
    from pointset.training.devices import find_device
    from pointset.zoo.regressors import conformal_rank

    for path in files:
        if (path / "run.json").exists():
            raise PointsetError(f"{path} is a run, not a shape: write --model {path}")
    if output is not None:
        check_writable(checked_suffix(output, SUFFIXES, "a file of predictions"))
    if model is None:
        raise PointsetError("predict needs --model with a run that was trained with --target")
    if not 0 < level < 1:
        raise PointsetError(f"level must be in (0, 1), got {level}")
    shapes, trained, start = in_folders(files), load_model(model, learned="numbers"), perf_counter()
    network, data = trained.network.to(find_device("auto")), trained.description["data"]
    answers = estimate_files(network, data, shapes, level=level, up=up, keep_outliers=keep_outliers)
    answers = followed(answers, "predicting", "shape", len(shapes), show=len(shapes) > FEW)
    estimates, failures = usable(answers, on_error)
    seconds = perf_counter() - start
    about = {"model": trained.name, "targets": list(network.targets), "level": level}
    if output is not None:
        write_guesses(output, estimates, about)
    if as_json:
        summary = {"output": str(output) if output else None, "shapes": len(estimates), "seconds": seconds}
        left_out = {"left_out": {failure.name: failure.reason for failure in failures}}
        rows = {} if output else {"predictions": [estimate.as_dict() for estimate in estimates]}
        print_json({**about, **summary, **left_out, **rows})
        return
    if output is None:
        print_rows(
            [
                {"shape": estimate.name}
                | {
                    key: text
                    for target, (value, low, high) in estimate.values.items()
                    for key, text in (
                        (target, f"{value:.4g}"),
                        (f"{target}: {level:.0%} interval", f"{low:.4g} to {high:.4g}"),
                    )
                }
                for estimate in estimates
            ]
        )
    where = f"saved in {output}: " if output else ""
    print(f"{where}{len(estimates):,} shape{'s' * (len(estimates) != 1)} in {seconds:.1f} s")
    if conformal_rank(held_out := network.scores.shape[1], level) > held_out:
        print(f"no intervals at {level:.0%}: too few shapes ({held_out}) were held out in training, see --validation")
    for failure in failures:
        print(escaped(f"left out {failure.name}: {failure.reason}"))
