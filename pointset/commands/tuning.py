"""`pointset tune`: search for options on a validation split."""

from pathlib import Path
from typing import Annotated

from pointset.commands.options import Json, RunningFlags, Spread
from pointset.commands.terminal import print_json, print_rows
from pointset.errors import PointsetError
from pointset.tasks.shipped import shipped_experiment

SHOWN = 10
"""Trials in the table."""


def tune(
    file: Path | None = None,
    /,
    *,
    data: str | None = None,
    trials: int = 30,
    seed: int = 0,
    validation: float | None = None,
    out: Path | None = None,
    spread: Annotated[Spread, RunningFlags] = Spread(),
    as_json: Json = False,
) -> None:
    """Search for the options of networks with Optuna, judged on a validation split of the training shapes.

    The test shapes are not read. The best options become an experiment, best.toml, for `pointset compare`, which trains
    on all training shapes, with several seeds, and tests. The validation accuracy of the best of many trials is too
    high to be reported.

    If interrupted, run the same command again to continue; with more --trials it goes on. Needs the extra tune.

    Example: `pointset tune --data path/to/parts --trials 40`, then `pointset compare runs/tune/best.toml`

    Args:
        file: An experiment file (TOML) with a table [search] of fields of [recipe] and [model]; each is a list of
            values, or a range such as {low = 1e-4, high = 1e-2, log = true}. Several models are a choice, too.
        data: Name of a card, or a folder; needed without FILE, which then is scripts/experiments/tune.toml.
        trials: Number of trainings, those of earlier calls included. After some of them, the others end early if they
            are below the median.
        seed: Seed of the search and of all trainings.
        validation: Share of the training shapes to judge on; default: that of the file's recipe, or 0.2.
        out: Folder for the trials and best.toml; default: runs/tune or runs/FILE.
        as_json: Print JSON.
    """
    from pointset.tasks.tuning import Search
    from pointset.tasks.tuning import tune as run_search

    if file is None and data is None:
        raise PointsetError("tune needs --data with your shapes, or an experiment file with a table [search]")
    changes = {} if data is None else {"data": data}
    search = Search.of(file or shipped_experiment("tune"), seed, validation, **changes)
    tuned = run_search(search, out or Path("runs") / (file.stem if file else "tune"), trials, spread.make_workers())
    if as_json:
        print_json({"experiment": str(tuned.file), "trials": tuned.trials})
        return
    print_rows([{key: _short(value) for key, value in row.items()} for row in tuned.trials[:SHOWN]])
    print(f"the best of {len(tuned.trials)} trials, judged on {search.validation:.0%} of the training shapes; next:")
    print(f"  pointset compare {tuned.file}")


def _short(value: object) -> object:
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:.3g}" if isinstance(value, float) else value
