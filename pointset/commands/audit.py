"""`pointset audit`: what an accuracy is made of."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pointset.commands.models import load_model
from pointset.commands.options import Json
from pointset.commands.terminal import print_json, print_rows
from pointset.errors import PointsetError
from pointset.runs.atomic import checked_suffix

if TYPE_CHECKING:
    from pointset.comparison.audit import Step


def audit(
    runs: list[str],
    *,
    data: str | None = None,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    as_json: Json = False,
) -> None:
    """Say what an accuracy is made of: farthest points, votes and the best seed, from the same weights.

    Published accuracies differ in these by more than most models do. Each step is measured on top of those before it,
    beside published figures on ModelNet40 and what is known to be in them.

    Example: `pointset audit runs/a-seed0 runs/a-seed1 runs/a-seed2 -o audit.svg`

    Args:
        runs: Folders of runs of one model with different seeds, or a trained model from `pointset zoo --pretrained`.
        data: Name of a card, or a folder; default: the dataset of the runs.
        output: A picture of the steps (*.svg or *.png).
        as_json: Print JSON.
    """
    from pointset.comparison.audit import audit as audit_models
    from pointset.comparison.audit import draw_steps, published_accuracies
    from pointset.data.loading import load_like
    from pointset.viz.writing import save

    if output is not None:
        checked_suffix(output, (".svg", ".png"), "a picture")
    trained = [load_model(run) for run in runs]
    descriptions = [one.description["data"] for one in trained]
    keys = ("classes", "points", "normalize", "features")
    if any(other.get(key) != descriptions[0].get(key) for other in descriptions for key in keys):
        raise PointsetError("the runs differ in their data: audit runs of one model that differ only in their seeds")
    sets = load_like(descriptions[0], "test", data)
    whole = load_like(descriptions[0], "test", data, points=int(sets.source_pool.sizes.min()))
    steps = audit_models([one.network for one in trained], sets, whole)
    published = published_accuracies()
    if output is not None:
        save(draw_steps(steps), output)
    if as_json:
        print_json({"steps": [asdict(step) for step in steps], "published": published})
        return
    print_rows([_row(step) for step in steps])
    print()
    shown = ("name", "accuracy", "epoch", "points", "votes", "normals", "source")
    print_rows([{key: _word(one[key]) for key in shown} for one in published])


def _row(step: "Step") -> dict[str, Any]:
    interval = step.interval
    return {
        "step": step.name,
        "accuracy %": "" if step.accuracy is None else f"{100 * step.accuracy:.1f}",
        "gain": "" if step.gain is None else f"{100 * step.gain:+.1f}",
        "95 % interval": "" if interval is None else f"{100 * interval.low:+.1f} to {100 * interval.high:+.1f}",
        "note": step.note,
    }


def _word(value: Any) -> Any:
    return {True: "yes", False: "no", "": "not said"}.get(value, value) if isinstance(value, bool | str) else value
