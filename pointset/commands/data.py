"""`pointset data`: what data sets there are, what is known of them, pools of points on disk."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter

from pointset.commands.options import HERE, Flags, Json, RunningFlags, Spread
from pointset.commands.printing import in_words, print_json, print_rows
from pointset.data.axes import UsualUp
from pointset.data.options import DataOptions
from pointset.errors import PointsetError, escaped, one_line
from pointset.runs.atomic import check_place

if TYPE_CHECKING:
    from pointset.data.pools.plan import Sampling

SheetFile = Annotated[Path | None, Parameter(name=["--output", "-o"])]
app = App(
    name="data",
    help_format="markdown",
    group_parameters=Flags,
    help="Data sets: what there is, what is known about it, pools of points on disk.",
)


@app.command(name="list")
def list_(*, as_json: Json = False) -> None:
    """List the data sets that have a card.

    Args:
        as_json: print JSON.
    """
    from pointset.data.catalogue.cards import list_cards, load_card

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
    print_rows(rows, as_json)


@app.command
def show(
    name: str, *, output: SheetFile = None, up: UsualUp = "auto", split_seed: int = 0, as_json: Json = False
) -> None:
    """Show all that a data set's card says; or, of a folder, how many shapes its classes have and what they look like.

    The picture has a few shapes of every class, upright, so that a lying one is seen before anything is trained.

    Example: `pointset data show path/to/parts -o parts.png`

    Args:
        name: the card's name, or a folder.
        output: the picture to write (.png or .svg); beside the pools when not given, and none of a card.
        up: the files' upward axis; auto takes the card's, or y for OBJ, GLB and glTF and z for others.
        split_seed: of the rule that splits a class/file folder.
        as_json: print JSON.
    """
    _check_picture(output)
    from pointset.data.catalogue.cards import list_cards, load_card
    from pointset.data.pools.plan import Sampling

    if name not in list_cards():
        told = _look(name, Sampling(DataOptions.pool_points), output, up, split_seed)
        print_json(told) if as_json else _print_overview(told)
        return
    if output is not None:
        told = _look(name, Sampling(DataOptions.pool_points), output, up, split_seed)
        print(f"saved in {told['picture']}", file=sys.stderr)
    card = asdict(load_card(name))
    if as_json:
        print_json(card)
        return
    card["download"] = {key: value for key, value in card["download"].items() if value is not None}
    width = max(map(len, card))
    for key, value in card.items():
        if value:
            print(f"{key:{width}}  {in_words(value, separator=chr(10) + ' ' * (width + 2))}")


@app.command
def build(
    data: str = "shapes10",
    *,
    points: int = DataOptions.pool_points,
    sampler: Literal["uniform", "fps", "poisson"] = "uniform",
    seed: int = 0,
    normals: bool = False,
    spread: Annotated[Spread, RunningFlags] = HERE,
    on_error: Literal["raise", "skip"] = "raise",
    rebuild: bool = False,
    split_seed: int = 0,
    output: SheetFile = None,
    up: UsualUp = "auto",
    as_json: Json = False,
) -> None:
    """Sample every mesh of a data set into pools of points on disk, so that later commands start at once.

    A build that was cut off goes on when the same command is given again. It ends with a picture of a few shapes of
    every class, upright.

    Example: `pointset data build path/to/parts --on-error skip`

    Args:
        data: a card's name, or a folder of meshes as class/split/file, split/class/file or class/file.
        points: points per shape.
        sampler: how they are chosen on the surface.
        seed: of the points.
        normals: keep the unit normal at each point too.
        on_error: fail when meshes cannot be used, after all have been tried, or finish without them.
        rebuild: make them again, even if they exist.
        split_seed: of the rule that splits a class/file folder.
        output: the picture to write (.png or .svg); beside the pools when not given.
        up: the files' upward axis, on the picture; auto takes the card's, or y for OBJ, GLB and glTF and z for others.
        as_json: print JSON.
    """
    _check_picture(output)
    from pointset.data.pools.build import build_dataset
    from pointset.data.pools.plan import Sampling

    report = build_dataset(
        data,
        points=points,
        sampler=sampler,
        seed=seed,
        normals=normals,
        **asdict(spread),
        on_error=on_error,
        rebuild=rebuild,
        split_seed=split_seed,
    )
    told = _look(data, Sampling(points, sampler, seed, normals), output, up, split_seed)
    if as_json:
        pools = {
            split: {"shapes": made.shapes, "sampled": made.sampled, "folder": str(made.folder)}
            for split, made in report.pools.items()
        }
        print_json({"pools": pools, "left_out": report.failures, "seconds": round(report.seconds, 2), **told})
        return
    for split, made in report.pools.items():
        print(f"{split}: {made.shapes:,} shapes of {points:,} points, {made.sampled:,} sampled now, in {made.folder}")
    for name, reason in report.failures.items():
        print(escaped(f"left out {name}: {reason}"))
    print(f"{report.seconds:.1f} s")
    _print_overview(told)


def _check_picture(output: Path | None) -> None:
    """Refuse a path that no picture can be written to, before anything slow is done, even imports."""
    from pointset.viz.writing import STILL_SUFFIXES, checked_suffix

    if output is not None:
        check_place(checked_suffix(output, STILL_SUFFIXES, "a still picture"))


def _look(data: str, sampling: "Sampling", output: Path | None, up: UsualUp, split_seed: int) -> dict[str, Any]:
    """Count the shapes and draw a few of them; what was found, as plain data."""
    from pointset.data.catalogue.home import make_folder, pools_home
    from pointset.data.pools.overview import look_at
    from pointset.viz import Camera, draw_clouds, save

    found = look_at(data, sampling, split_seed=split_seed, up=up)
    names, clouds = zip(*found.samples, strict=True)
    title = f"{found.name}: {found.up.upper()} is taken for the upward axis"
    picture = draw_clouds(
        clouds, names=[one_line(name, 14) for name in names], camera=Camera(up=found.up), title=title, columns=8
    )
    path = save(picture, output or make_folder(pools_home()) / f"{found.name}.png", dpi=100)
    return {
        "classes": found.classes,
        "splits": {split: sum(counts.values()) for split, counts in found.counts.items()},
        "split_rule": found.rule,
        "up": found.up,
        "up_assumed": found.assumed,
        "picture": str(path),
    }


def _print_overview(told: dict[str, Any]) -> None:
    sizes = list(told["classes"].items())
    (most, largest), (least, smallest) = sizes[0], sizes[-1]
    extremes = f": {most} is the largest with {largest:,} shapes, {least} the smallest with {smallest:,}"
    print(escaped(f"{len(sizes)} classes{extremes if largest > smallest else f' of {largest:,} shapes each'}"))
    splits = ", ".join(f"{count:,} {split}" for split, count in told["splits"].items())
    print(escaped(f"splits: {splits}; by {told['split_rule']}"))
    assumed = " is assumed for such files: --up y or --up z says what it is" if told["up_assumed"] else ""
    print(f"up: {told['up']}{assumed}")
    print(escaped(f"a few shapes of each class, as they would stand: {told['picture']}"))


@app.command
def fetch(name: str) -> None:
    """Download and unpack the data of a card. A fetch that was cut off goes on when the same command is given again.

    Args:
        name: the card's name.
    """
    from pointset.data.catalogue.fetch import fetch as fetch_data

    print(f"{name} is in {fetch_data(name)}")


@app.command
def verify(data: str = "shapes10", *, as_json: Json = False) -> None:
    """Compare every pool of a data set with its manifest and its meshes, or the files of a release with their digests.

    Args:
        data: a card's name or a folder.
        as_json: print JSON.
    """
    from pointset.data.pools.verify import verify_dataset

    pools = verify_dataset(data)
    if as_json:
        print_json([{**asdict(pool), "folder": str(pool.folder), "remedy": pool.remedy} for pool in pools])
    else:
        for pool in pools:
            left_out = f", {pool.skipped:,} left out" if pool.skipped else ""
            state = "; ".join(pool.problems) or "sound"
            print(escaped(f"{pool.folder}: {pool.shapes:,} {pool.what}{left_out}: {state}"))
    damaged = [pool for pool in pools if pool.problems]
    if damaged:
        remedies = "; ".join(dict.fromkeys(pool.remedy for pool in damaged))
        raise PointsetError(f"{len(damaged)} of {len(pools)} pools cannot be trusted: {remedies}")
