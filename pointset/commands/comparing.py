"""`pointset compare`: many models, one protocol, one table."""

from pathlib import Path
from typing import Annotated

from pointset.commands.options import DataFlags, Json, ModelFlags, RecipeFlags
from pointset.configuration import QuickData, QuickModel, QuickRecipe

MAIN_JOB = ("rff-mean", "rff-max", "rffp-max", "rff-pma", "sab-pma", "isab16-max", "isab16-pma")


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
    as_json: Json = False,
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
    print(result.caption())
    print(result.table())
    print(f"saved in {out}: table.md, results.csv, results.json")
