"""`pointset task`: the shipped experiment of a set problem, its models beside what is published."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pointset.commands.grids import changed, run_or_look
from pointset.commands.options import Json, Running, RunningFlags


def task(
    name: str,
    /,
    *,
    models: tuple[str, ...] | None = None,
    seeds: tuple[int, ...] | None = None,
    steps: int | None = None,
    data: str | None = None,
    out: Path | None = None,
    running: Annotated[Running, RunningFlags] = Running(),
    as_json: Json = False,
) -> None:
    """Run an experiment on a set problem without meshes, and compare it with published results.

    If interrupted, run the same command again to continue.

    Example: `pointset task max-regression --models "rFF + max" "SAB + PMA" --seeds 0`

    Args:
        name: max-regression, clustering, counting or anomaly; or an experiment file (TOML), such as those in
            scripts/experiments/tasks.
        models: Rows of the experiment to run; default: all.
        seeds: Seeds, one run per model and seed; default: as in the experiment.
        steps: Training steps; default: as in the experiment.
        data: Folder of images for counting and anomaly, such as Omniglot; default: embedded images of digits.
        out: Folder for the runs, report.html, report.md, table.md, results.csv and results.json; default: runs/NAME.
        as_json: Print JSON.
    """
    from pointset.tasks.experiments import read_experiment
    from pointset.tasks.shipped import shipped_experiment

    file = Path(name) if name.endswith(".toml") else shipped_experiment(name)
    experiment = read_experiment(file)
    recipe = None if steps is None else replace(experiment.recipe, steps=steps)
    experiment = changed(experiment, models, seeds=seeds, threads=running.threads, data=data, recipe=recipe)
    out = out or Path("runs") / file.stem
    run_or_look(experiment, out, running, as_json)
